"""What `kubectl hudi import` does: a HoodieStreamer job as one HudiTable and one HudiWriter.

`words` and `properties` read what the job was given, `avro` and `yaml` know these two formats,
`rules` says of options what becomes of them, `objects` builds the objects, one topic a module
(`table`, `services`, `sources`, `writer`), and `job` puts them together. Nothing here asks a
cluster. Of this repository it uses the rules for options in `hudi_contract`; below it is nothing
else of the plugin.
"""
