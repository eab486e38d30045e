"""The cluster's DNS for pods that are processes on this machine."""
