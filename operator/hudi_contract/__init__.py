"""The contract between operator, agents and drivers.

Everything that more than one process reads or writes, defined once.

    keys                       names of keys; `protocol.json` with keys, words and fields that Java
                               has as well, transactions, codes, default durations
    naming, metadata           names of pods, attempts, agents, labels, finalizers; of
                               fields in commits
    words, outcomes            states, roles, results, modes; failure classes, exit
                               codes, error codes
    environment                variables, files and classes that pods are given
    options, allowed_options   which options of Hudi belong to operator or table; which
                               of Hudi, Spark and Kafka a user may set
    secret_names               names behind which a secret is expected, and hidden
    defaults                   what a namespace may set for all its HudiWriters
    backoff                    the pauses between looks, and after failures
    shape                      how a record is written in JSON
      table_keys, settle       records of the lock protocol, and of settling
      requests, reports        requests to an agent and their results; reports of
                               agents and attempts
      assignment, job          a table of an agent; `job.json`
        records                values of etcd, read into these types tolerantly (F46)

It is in both images, and the operator and the runtime use the same classes; docs/design/records.md
is made from them. The Java module packs `protocol.json` and the rules for each option of Hudi
(`hudi_options.tsv`). Uses the standard library alone, imports nothing of the operator or the
runtime, and does no I/O beyond reading its own data. Keeps I6: every name follows from its inputs,
so an action that is repeated finds what it made before.
"""
