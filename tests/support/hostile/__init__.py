"""Random HudiTables and HudiWriters with hostile texts, and what must hold for those that launch.

`grammar` draws a pair of objects of a seed: fields with ordinary values, of which a few are
replaced by, or get put into them, what means something to a properties file, a shell, the kubelet,
the JVM, YAML or a file system (`vocabulary`; `templates` are podTemplates). `launch` says why the
operator would start nothing of them. `oracle` renders the remaining objects, and reads each file
and pod back with independent readers (`readers`, `oracle_pods`): the text of a field may only be
where that field belongs.
"""
