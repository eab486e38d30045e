"""``python -m hudi_operator.etcd_certificates``: the identities of the chart's etcd.

A separate process with its own ServiceAccount. It makes etcd's certificate authority and the
certificates of etcd and its clients, keeps them in Secrets of the release's namespace, renews them,
and keeps etcd's users and roles (``etcd_auth``). It alone reads the authority's key; the operator
and the pods of Spark do not. With certificates from cert-manager or from Secrets of one's own it
only does the last part.

``plan`` decides the contents of the Secrets (without a clock or requests), ``keeper`` reads and
writes them. It uses the adapters and ``etcd_auth``; nothing of the operator uses it. No invariant
of the protocol lives here: without it nobody new is let into etcd, and nobody is let in wrongly.
"""
