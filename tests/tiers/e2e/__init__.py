"""Tests on a real cluster with kubelet, the built images and the chart."""
