"""Kubernetes manifests and the files that pods read.

Pure functions from specs and configuration to dicts and text.

May use model, api and hudi_contract. Keeps I6: equal input gives an equal object under the same
name. Pods get credentials by reference to a Secret; the only secret that is copied is the pods'
identity for etcd, into the Secret that `namespace` creates. Keys are made where actions are
performed.
"""
