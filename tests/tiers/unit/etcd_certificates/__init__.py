"""The identities of the chart's etcd: what the Secrets must say, and when."""
