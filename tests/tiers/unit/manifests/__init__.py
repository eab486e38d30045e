"""Tests of the builders of pods, ConfigMaps and configuration files."""
