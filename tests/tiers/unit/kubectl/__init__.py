"""Tests of the kubectl plugin: reasons, pictures, what a report leaves out."""
