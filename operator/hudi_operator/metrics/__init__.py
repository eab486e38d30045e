"""The operator's metrics.

``catalog`` declares every metric in one table, from which docs/operate/metrics.md is made.
``statuses`` says what a look at a table shows; ``lock_times`` measures the lock by etcd's watch;
``certificates`` reads until when certificates are valid. ``meter`` puts them together. Metrics only
inform: no decision is made from one. Uses everything below ``handlers``.
"""
