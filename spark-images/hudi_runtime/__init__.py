"""The Python that runs inside Spark pods: the driver of one attempt (`writer`) and the agent of a table (`agent`).

Safety is not decided here. Lock, fence and publication checks live in the Java session (docs/protocol.md); this package runs sources,
asks the timeline for the truth, classifies failures, and - in the agent - rolls back exactly the instants of settled incarnations.
"""
