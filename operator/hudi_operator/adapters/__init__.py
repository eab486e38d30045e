"""etcd and Kubernetes behind the Protocols of `model.ports`.

Requests, watches, leader election, and the classes of their errors.

May use manifests, model, api and hudi_contract; never the planners or the control loop. An error
leaves this layer as one of Retryable, Conflict, OutcomeUnknown, Fatal or LeaseLost; a request whose
answer is missing is OutcomeUnknown, never a failure (I11).
"""
