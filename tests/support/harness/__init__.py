"""Real parts, started for a test: servers of etcd, Kubernetes, S3, Kafka, HDFS and GCS, operators,
agents, writers, stock Hudi.

`local` is the world of the hudi tier, `operator_world` that of the component tier.
"""
