"""Implementation of `kubectl hudi import`: a HoodieStreamer job as a HudiTable and a HudiWriter.

`words` and `properties` read what the job was given, `avro` and `yaml` know these two formats,
`rules` says of options what becomes of them, and one module for each topic builds its part of the
objects (`table`, `services`, `sources` with `jdbc`, `writer`). They share the translation under
way, `work`, and its records, `given`; `job` puts the parts together. Nothing here asks a cluster.
From this repository it uses the rules for options and the names of secrets in `hudi_contract`, and
no other part of the plugin.
"""
