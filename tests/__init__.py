"""Everything that shows that the product does what it says.

`tiers` holds the tests, by how much of what they run is real; `campaigns` holds long searches and
measurements, which write pages of docs/results; `support` holds what tiers and campaigns share.
Imports go one way: tiers → campaigns → support, and no test imports another test's module.
`tests/run` runs the tiers.
"""
