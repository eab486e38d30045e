"""`make certify HUDI=x SPARK=y`: the tests that decide about a version of Hudi or Spark.

The lock, the conflict strategy, the rules of statements and the table services rest on classes that
Hudi and Spark do not promise to keep. `decides.yaml` lists them, and the tests that show whether
they still do what this project takes for granted. Docs/results/certify.md has what was run.

`decisions` reads the list, and what the code names; `candidate` is a checkout with another version;
`run` runs the list in the checkout that it is in; `page` writes the page.
"""
