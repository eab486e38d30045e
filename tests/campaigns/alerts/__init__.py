"""Each alert of the chart on a cluster in which its fault was made, with its runbook's commands.

`rules` shortens the alerts' times, `stage` has the cluster and the servers, `of_tables`,
`of_writers` and `of_the_operator` make the faults, `runbook` runs what a page says, `run` does all
this, `page` writes the results.
"""
