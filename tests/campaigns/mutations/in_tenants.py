"""Mutations of what one team may do: launch checks of the operator, and the chart's policies."""

from __future__ import annotations

from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import Edit, mutation

LAUNCH = "tests/tiers/unit/plan/test_launch.py"
CRDS = "tests/tiers/component/crds"
TEMPLATES = "charts/hudi-operator/templates"

EVENT_LOG = "tests/tiers/unit/plan/writers/test_event_log.py"
NESTING = "tests/tiers/unit/plan/test_nesting.py"
LOOP = "tests/tiers/unit/control/test_loop.py"
ROLES = "tests/tiers/unit/plan/test_roles.py"
HELD = "tests/tiers/unit/plan/fencing/test_held_config_maps.py"
TURNS = "tests/tiers/unit/plan/gate/test_turns.py"

TENANTS = (
    mutation(
        "whoever-comes-first-keeps-the-path",
        "F191",
        "a HudiTable that cannot reach its path keeps its owner out for ever",
        o("plan/gate/turns", "(view.timer(gate.UNREACHED_TIMER) or 0.0) >= TRY_SECONDS", "TRY_SECONDS < 0"),
        f"{TURNS}::test_who_does_not_reach_the_table_gives_way_to_who_does",
    ),
    mutation(
        "a-table-that-was-reached-is-given-up",
        "F191",
        "a table whose adoption waits for a person loses its gate when its agent is away",
        o("plan/gate/gate", "(view.gate.was_open or view.gate.reached or timeline", "(view.gate.was_open or timeline"),
        f"{TURNS}::test_who_has_reached_the_table_keeps_the_gate_although_it_may_not_open_it",
    ),
    mutation(
        "a-gate-is-given-up-beside-its-agent",
        "F191 I1",
        "an agent of the former HudiTable may act behind the gate of the next one",
        o(
            "plan/deletion",
            "    if leaving.actions or waiting or view.etcd.lock is not None:\n",
            "    if view.unreadable:\n",
        ),
        f"{TURNS}::test_who_does_not_reach_the_table_gives_way_to_who_does",
    ),
    mutation(
        "who-gave-way-comes-back-at-once",
        "F191",
        "two HudiTables take turns, and a third one never has one",
        o("plan/gate/turns", "t not in tried or tried.index(t) < tried.index(me)", "t in tried and t == me"),
        f"{TURNS}::test_who_does_not_reach_the_table_gives_way_to_who_does",
    ),
    mutation(
        "a-turn-waits-for-ever",
        "F191",
        "a HudiTable gives way to one that is invalid, and never gets the path back",
        o("plan/gate/turns", "(view.timer(_turn(view)) or 0.0) < TURN_SECONDS", "TURN_SECONDS > 0"),
        f"{TURNS}::test_a_turn_that_nobody_takes_goes_back",
    ),
    mutation(
        "an-agent-starts-without-the-owners-word",
        "F121",
        "a withdrawn Secret is given to the next agent",
        o("plan/agent/agents", "    if refused := launch.problem(view):\n", "    if refused := view.unreadable:\n"),
        f"{LAUNCH}::test_a_word_that_is_withdrawn_counts_at_the_next_launch",
    ),
    mutation(
        "silence-is-consent",
        "F121",
        "a Secret that names no table may be used by any",
        o(
            "api/references",
            '        if consent.tables is None and rule == "Optional":\n',
            "        if consent.tables is None:\n",
        ),
        f"{LAUNCH}::test_without_it_nothing_is_made",
        f"{LAUNCH}::test_rules_of_an_installation",
    ),
    mutation(
        "any-image-starts",
        "F120",
        "an image that was allowed when the table was applied starts for ever",
        o(
            "plan/gate/stalled",
            "    return _stall(launch.IMAGE_NOT_ALLOWED, launch.image_problem(view))\n",
            '    return _stall(launch.IMAGE_NOT_ALLOWED, "")\n',
        ),
        f"{LAUNCH}::test_an_image_that_is_not_allowed_starts_nothing",
    ),
    mutation(
        "a-writer-has-any-image",
        "F120",
        "the image of a HudiWriter is not asked for at launch",
        o("plan/core/launch", "references.image_problem(writer.image, ", "references.image_problem(view.table.image, "),
        f"{LAUNCH}::test_a_writers_own_image_account_and_pull_secret",
    ),
    mutation(
        "a-writer-has-any-account",
        "F121",
        "a HudiWriter names the ServiceAccount of another table's owner",
        o("api/references", "    if writer.service_account_name:\n", "    if not writer.table:\n"),
        f"{LAUNCH}::test_a_writers_own_image_account_and_pull_secret",
    ),
    mutation(
        "what-a-writer-names-is-asked-for-once",
        "F121",
        "a word that is withdrawn between admission and pod does not count",
        o("plan/writers/attempts", "launch.may_not_start(view, writer)", "launch.problem(view)"),
        f"{LAUNCH}::test_a_word_that_is_withdrawn_before_the_pod_is_there_counts",
    ),
    mutation(
        "a-fenced-writer-keeps-an-identity",
        "I1",
        "a writer whose credentials are revoked still reaches the store by an account of its own",
        o("api/revocable", "or not writer.service_account_name:", "or writer.service_account_name:"),
        f"{LAUNCH}::test_an_account_of_a_writers_own_would_not_be_revoked",
    ),
    mutation(
        "an-unlisted-namespace-has-any-path",
        "F127",
        "paths are limited in listed namespaces only",
        o(
            "plan/gate/stalled",
            'config.path_prefixes.get(namespace, config.path_prefixes.get("*"))',
            "config.path_prefixes.get(namespace)",
        ),
        f"{LAUNCH}::test_paths_of_namespaces_that_are_not_listed",
    ),
    mutation(
        "drivers-are-known-by-name",
        "F122",
        "the account of a table's own is not confined",
        Edit(
            f"{TEMPLATES}/_names.tpl",
            "authorizer.group('hudioperator.io').resource('executors').namespace(request.namespace).check('create').allowed()",
            "request.userInfo.username.endsWith(':hudi-driver')",
        ),
        f"{CRDS}/test_drivers.py::test_a_driver_starts_nothing_else",
    ),
    mutation(
        "an-identity-is-any-token",
        "F193",
        "a driver gives its executors a token for the API server, as if a cloud's webhook had added it",
        Edit(
            f"{TEMPLATES}/_names.tpl",
            " && has(s.serviceAccountToken.audience) && s.serviceAccountToken.audience == i[1]))",
            "))",
        ),
        f"{CRDS}/test_drivers.py::test_the_token_of_a_clouds_identity",
    ),
    mutation(
        "labels-of-evidence-are-free",
        "F124",
        "an editor takes labels and owner off a pod that is evidence",
        Edit(
            f"{TEMPLATES}/admission.yaml",
            "      (size(variables.changed) == 0 && !variables.owners && !variables.images) ||\n",
            "      size(variables.before) > 0 ||\n",
        ),
        f"{CRDS}/test_policies.py::test_evidence_is_not_stripped",
    ),
    mutation(
        "a-driver-ends-any-pod",
        "F123",
        "a driver deletes other drivers and their executors",
        Edit(
            f"{TEMPLATES}/admission.yaml",
            "variables.requester != '' && variables.driver == variables.requester && variables.role == 'executor'",
            "variables.requester != '' || variables.driver == variables.requester",
        ),
        f"{CRDS}/test_drivers.py::test_a_driver_ends_its_own_executors_only",
    ),
    mutation(
        "an-editor-fences-by-lease",
        "F125",
        "whoever may edit a table may take its safety away",
        Edit(
            f"{TEMPLATES}/admission-references.yaml",
            "name(object.metadata.name).check('lease-only').allowed()",
            "name(object.metadata.name).check('update').allowed()",
        ),
        f"{CRDS}/test_references.py::test_a_decision_needs_a_verb_of_its_own",
    ),
    mutation(
        "the-operator-deletes-any-pod",
        "F126",
        "the holder of the operator's token changes and deletes everybody's pods",
        Edit(
            f"{TEMPLATES}/admission-operator.yaml",
            "      ('spark-role' in variables.old && variables.old['spark-role'] == 'executor')\n",
            "      !('spark-role' in variables.old && variables.old['spark-role'] == 'executor')\n",
        ),
        f"{CRDS}/test_operators_account.py::test_it_may_not_change",
    ),
    mutation(
        "a-key-belongs-to-nobody",
        "F126",
        "the holder of the operator's token makes Secrets that stay, under the name of a key",
        Edit(
            f"{TEMPLATES}/admission-operator.yaml",
            "o.apiVersion == 'v1' && o.kind == 'Pod' && object.metadata.name in [o.name + '-spark-key', "
            "o.name + '-storage-key']",
            "o.apiVersion == 'v1' && object.metadata.name.endsWith('-spark-key')",
        ),
        f"{CRDS}/test_operators_account.py::test_it_may_not_create",
    ),
    mutation(
        "a-table-names-another-drivers-key",
        "F150",
        "the pods of one table read the key of another one's connections",
        o("api/references", " or named.name.endswith(OWN_SUFFIXES)", ""),
        f"{LAUNCH}::test_the_operators_own_secret_is_never_used",
    ),
    mutation(
        "nothing-keeps-what-executors-are-compared-with",
        "F200",
        "a driver whose HudiWriter is deleted in the foreground starts any pod",
        o("manifests/configmaps", '["finalizers"] = [naming.EVIDENCE_FINALIZER]', '["annotations"] = {}'),
        f"{CRDS}/test_drivers.py::test_it_outlives_its_writer",
    ),
    mutation(
        "what-executors-are-compared-with-goes-with-the-writer",
        "F200",
        "the ConfigMap of a driver goes while the token of its pod is good",
        o("plan/fencing/held_config_maps", "if _pod(view.observed, held) is not None or ", "if "),
        f"{HELD}::test_it_stays_as_long_as_the_object_of_its_pod",
    ),
    mutation(
        "a-config-map-is-held-for-ever",
        "F200 availability",
        "ConfigMaps of deleted tables stay, and with them their namespace",
        o(
            "plan/deletion",
            "*held_config_maps.last(view.observed), drop_finalizer(TABLE_KIND, ref))\n    return",
            "drop_finalizer(TABLE_KIND, ref))\n    return",
        ),
        f"{HELD}::test_a_table_with_kept_pods_leaves_nothing_behind",
    ),
    mutation(
        "without-parameters-nothing-is-judged",
        "F200",
        "in a namespace without ConfigMaps of ours an executor is compared with nothing",
        Edit(f"{TEMPLATES}/admission.yaml", "parameterNotFoundAction: Deny", "parameterNotFoundAction: Allow"),
        f"{CRDS}/test_policies.py::test_where_nothing_is_compared_no_executor_starts",
    ),
    mutation(
        "an-executor-is-compared-with-those-of-others",
        "F273",
        "an executor whose driver has no ConfigMap any more is compared with nothing where there are others",
        Edit(
            f"{TEMPLATES}/admission.yaml",
            "variables.volumes.exists(v, has(v.configMap) && has(v.configMap.name)",
            "true || variables.volumes.exists(v, has(v.configMap) && has(v.configMap.name)",
        ),
        f"{CRDS}/test_drivers.py::test_a_driver_starts_nothing_else",
    ),
    mutation(
        "an-executors-config-map-may-be-missing",
        "F273",
        "an executor that mounts its driver's ConfigMap if there is one starts without it",
        Edit(f"{TEMPLATES}/admission.yaml", "!(has(v.configMap.optional) && v.configMap.optional) &&", ""),
        f"{CRDS}/test_drivers.py::test_a_driver_starts_nothing_else",
    ),
    mutation(
        "what-an-upgrade-finds-is-not-held",
        "F271",
        "the ConfigMap of a driver from before an upgrade goes while the token of its pod is good",
        o("plan/fencing/held_config_maps", "naming.spark_key_name(unheld.name) in pod.secrets", "not pod.secrets"),
        f"{HELD}::test_that_of_a_pod_from_before_an_upgrade_is_held",
    ),
    mutation(
        "anybody-has-the-name-of-an-agent",
        "F272",
        "a pod of somebody else is taken for the agent by etcd's gateway, or keeps it from starting",
        Edit(
            f"{TEMPLATES}/admission-operator.yaml",
            "object.metadata.name.matches('^hudi-agent-[0-9a-f]{32}(-[0-9]+)?$')",
            "object.metadata.name.matches('^hudi-agent-[0-9a-f]{10}(-[0-9]+)?$')",
        ),
        f"{CRDS}/test_lookalikes.py::test_names_of_agents_are_the_operators",
    ),
    mutation(
        "a-config-map-of-somebody-else-is-mounted",
        "F272",
        "a pod of the operator's mounts files, or trusts a gateway, that somebody else has chosen",
        o(
            "control/executor",
            "                    and not context.foreign_files & files.get(attempt, frozenset())\n",
        ),
        f"{LOOP}::test_a_config_map_of_somebody_else_stops_only_the_pods_that_would_mount_it",
    ),
    mutation(
        "what-is-refused-to-one-writer-ends-the-plan",
        "F245 availability",
        "a quota or a policy that refuses one writer's pod stops the table's other writers",
        o("control/executor", "            if not attempt:\n", "            if context:\n"),
        f"{LOOP}::test_what_is_refused_to_one_attempt_stops_no_other",
    ),
    mutation(
        "refused-and-admitted",
        "F291",
        "an attempt whose pod is refused stays admitted, and another pod of its name is a writer",
        o(
            "control/executor",
            "            if isinstance(action, act.CreatePod):\n"
            "                await self._withdraw_refused(context, action, attempt)\n",
        ),
        f"{LOOP}::test_who_gets_no_pod_is_not_admitted",
    ),
    mutation(
        "admitted-under-a-strangers-name",
        "F291",
        "an attempt that waits, or whose name somebody else's pod has, keeps an earlier admission",
        o(
            "control/executor",
            "            await self._withdraw_unmade(context, plan, {*taken, *context.waiting})\n",
            "            await self._withdraw_unmade(context, plan, set())\n",
        ),
        f"{LOOP}::test_who_gets_no_pod_is_not_admitted",
    ),
    mutation(
        "refused-what-is-there",
        "F291 availability",
        "a pod that is there loses its admission because a quota refuses to make it once more",
        o("control/executor", " and (found is None or not _is(found, action.manifest)):", ":"),
        f"{LOOP}::test_an_attempt_with_a_pod_stays_admitted_whatever_is_refused_to_it",
    ),
    mutation(
        "waits-for-what-it-may-not-have",
        "F292 availability",
        "an attempt that may not start any more says that it starts",
        o(
            "plan/writers/writer_status",
            "if refused is not None else _not_started(view, writer)",
            'if refused is not None else ""',
        ),
        "tests/tiers/unit/plan/writers/test_refused_starts.py"
        "::test_what_the_operator_itself_starts_no_more_is_said_of_an_attempt_without_a_pod",
    ),
    mutation(
        "looks-at-who-is-refused",
        "F245 availability",
        "each table of a team whose quota is full is looked at every five seconds",
        o("plan/core/launch", "return STARTS_SECONDS if refused is None else", "return STARTS_SECONDS if view else"),
        "tests/tiers/unit/plan/writers/test_refused_starts.py::test_who_is_refused_is_looked_at_when_it_is_tried_again",
    ),
    mutation(
        "a-refused-pod-is-tried-at-each-look",
        "F245 availability",
        "the operator asks the API server for a refused pod without any back-off",
        o("control/refusals", "known.digest == digest and self._clock() < known.due", "known.due < 0"),
        f"{LOOP}::test_a_refused_attempt_is_tried_again_with_back_off_and_at_once_when_it_is_another_one",
    ),
    mutation(
        "nobody-says-what-was-refused",
        "F245 availability",
        "a writer whose pod is refused waits, and its status does not say for what",
        o("plan/writers/writer_status", "view.observed.refusals.get(writer.active.id) if", "None if"),
        "tests/tiers/unit/plan/writers/test_refused_starts.py::test_a_refusal_is_a_condition_of_its_writer_and_no_failure",
    ),
    mutation(
        "any-pod-has-a-role",
        "F205",
        "a pod that somebody has labelled is taken for the agent, or for an attempt",
        o("plan/core/ownership", "for pod in pods if has_role(pod)))", "for pod in pods if pod.labels))"),
        f"{ROLES}::test_a_pod_without_the_role_is_not_the_attempt",
        f"{ROLES}::test_whoever_is_named_in_etcd_is_acted_upon_with_its_role_only",
    ),
    mutation(
        "a-role-fits-any-name",
        "F205",
        "a pod of any name is taken for the agent",
        o("plan/core/ownership", 'bool(agent) and pod.name.startswith(f"{agent}-")', "bool(agent)"),
        f"{ROLES}::test_a_pod_of_another_name_is_not_the_agent",
    ),
    mutation(
        "labels-are-judged-at-creation-only",
        "F206",
        "somebody's pod gets labels of the operator when it is there",
        Edit(
            f"{TEMPLATES}/admission-operator.yaml",
            "      size(variables.changed) == 0 || request.userInfo",
            "      request.operation == 'UPDATE' || size(variables.changed) == 0 || request.userInfo",
        ),
        f"{CRDS}/test_lookalikes.py::test_labels_of_the_operator_are_its_own",
    ),
    mutation(
        "a-driver-chooses-labels",
        "F206",
        "an executor counts for another attempt",
        Edit(f"{TEMPLATES}/admission.yaml", " && variables.labels.all(l, l in variables.allowedLabels)", ""),
        f"{CRDS}/test_drivers.py::test_a_driver_starts_nothing_else",
    ),
    mutation(
        "an-executor-has-any-name",
        "F206",
        "an executor has the name of the next attempt's pod, which then does not start",
        Edit(
            f"{TEMPLATES}/admission.yaml",
            "request.operation == 'DELETE' || (has(object.metadata.name)",
            "request.operation != '' || (has(object.metadata.name)",
        ),
        f"{CRDS}/test_drivers.py::test_a_driver_starts_nothing_else",
    ),
    mutation(
        "names-of-agents-are-short",
        "F207",
        "a table is served with the credentials of another one whose agent has the same name",
        Edit("operator/hudi_contract/naming.py", "_AGENT_DIGITS = 32\n", "_AGENT_DIGITS = 10\n"),
        "tests/tiers/unit/contract/test_naming.py::test_names_of_agents_have_128_bits",
    ),
    mutation(
        "ids-of-tables-are-short",
        "F275",
        "a tenant finds a path whose keys in etcd are those of somebody else's table",
        Edit("operator/hudi_contract/naming.py", "_TABLE_ID_DIGITS = 32\n", "_TABLE_ID_DIGITS = 16\n"),
        "tests/tiers/unit/contract/test_naming.py::test_table_id_is_the_first_32_digits_of_sha256",
    ),
    mutation(
        "an-event-log-goes-anywhere",
        "F208",
        "a writer's event log is written outside the prefixes of its namespace",
        o("plan/writers/admission", "    _event_log_is_not_allowed,\n", ""),
        f"{EVENT_LOG}::test_a_refused_folder_stalls_the_writer",
    ),
    mutation(
        "an-event-log-lies-in-its-table",
        "F208",
        "a writer's event log is written between the table's files",
        o("plan/writers/event_log", "if naming.overlaps(folder, t.path)", "if folder == t.path"),
        f"{EVENT_LOG}::test_folders",
    ),
    mutation(
        "an-event-log-lies-in-a-table-of-others",
        "F270",
        "a writer's event log is written between the files of a table that it does not read",
        o("plan/writers/event_log", ", *view.observed.tables_at_event_logs.get(folder, ())]", "]"),
        f"{EVENT_LOG}::test_the_folder_of_any_table",
    ),
    mutation(
        "a-table-that-was-never-open-keeps-event-logs-away",
        "F270 availability",
        "a HudiTable of another namespace keeps a team's writers from starting",
        o("control/nesting", "(key[0] == namespace and not path_problem(path, namespace, config))", "True"),
        f"{NESTING}::test_tables_of_others_keep_event_logs_away_only_when_they_were_open",
    ),
    mutation(
        "an-older-table-need-not-reach-its-path",
        "F277 availability",
        "a HudiTable that never works keeps tables out of the folders around it for ever",
        o("control/nesting", "(first and (trying or _reached(ref.uid, seen)))", "first"),
        f"{NESTING}::test_an_older_one_that_does_not_reach_its_path_keeps_nobody_out",
    ),
    mutation(
        "a-table-that-was-reached-counts-no-more",
        "F277 F61",
        "a table is made in the folder of an older one whose agent has created it and not opened it yet",
        o("control/nesting", "(trying or _reached(ref.uid, seen))", "trying"),
        f"{NESTING}::test_an_older_one_that_does_not_reach_its_path_keeps_nobody_out",
    ),
    mutation(
        "gates-of-overlapping-tables-are-not-compared",
        "F277 F61",
        "two tables, one in the folder of the other, both open after an operator that was paused",
        o("plan/gate/gate", ", mod, view.observed.overlapping_gates)", ", mod)"),
        f"{NESTING}::test_the_gate_is_put_with_what_was_seen",
    ),
    mutation(
        "gates-of-overlapping-tables-are-not-in-the-transaction",
        "F277 F61",
        "two tables, one in the folder of the other, both open after an operator that was paused",
        o(
            "adapters/etcd",
            "mod) for other, mod in sorted(others.items())),",
            "mod) for other, mod in sorted(others.items())[:0]),",
        ),
        "tests/tiers/component/operator/test_etcd_adapter.py::test_a_gate_is_changed_only_as_it_was_read",
    ),
    mutation(
        "namespaces-have-no-turns",
        "F276 availability",
        "the tables of one team keep those of all others waiting",
        o(
            "control/queue",
            "            self._ready[namespace] = waiting  # at the end: the others come first\n",
            "            self._ready = {namespace: waiting, **self._ready}\n",
        ),
        "tests/tiers/unit/control/test_queue.py::test_namespaces_have_turns",
    ),
    mutation(
        "one-answer-may-be-of-any-size",
        "F209 availability",
        "a tenant with large objects fills the operator's memory",
        o("adapters/kubernetes", "PAGE = 50\n", "PAGE = 500\n"),
        "tests/tiers/unit/adapters/test_lists_of_pods.py::test_no_answer_has_more_than_fifty_objects",
    ),
    mutation(
        "releases-share-a-role",
        "F128",
        "the role of drivers has one name in all releases",
        Edit(
            f"{TEMPLATES}/_names.tpl",
            '{{ include "hudi-operator.fullname" . }}-driver\n',
            "hudi-operator-driver\n",
        ),
        f"{CRDS}/test_chart.py::test_two_releases_share_no_name",
    ),
)
