"""Settings of a bucket that damage the table are a condition and an event, and stop nothing."""

from __future__ import annotations

from tests.support.world.simulated_world import World

RULE = (
    "lifecycle rule 'old' (prefix '') removes or moves files after 30 days, including files that the table still "
    "references"
)


def told(world: World, **more: object) -> None:
    world.put(
        "report/timeline", {**{k: v for k, v in world.kv["report/timeline"].value.items() if k != "bucket"}, **more}
    )
    world.reconcile()


def test_a_rule_is_named_until_it_is_gone() -> None:
    world = World()
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert world.table is not None
    assert not [c for c in world.table["status"]["conditions"] if c["type"] == "BucketSafe"], "nothing is known"
    told(world, bucket={"harmful": [RULE], "unknown": []})
    found = world.condition(world.table, "BucketSafe")
    assert (found["status"], found["reason"], found["message"]) == ("False", "HarmfulSettings", RULE)
    assert world.is_true(world.table, "Ready")
    assert any(e.type == "Warning" and RULE in e.message for e in world.events), "a person is told"
    told(world, exists=False)
    assert world.condition(world.table, "BucketSafe")["reason"] == "HarmfulSettings", "nobody has looked since"
    told(world, exists=True, bucket={"harmful": [], "unknown": ["replication"]})
    found = world.condition(world.table, "BucketSafe")
    assert (found["status"], found["message"]) == ("Unknown", "not known: replication"), "silence is no consent"
    told(world, bucket={"harmful": [], "unknown": []})
    assert world.condition(world.table, "BucketSafe")["status"] == "True"
    told(world, bucket={"harmful": [], "costly": ["old versions stay"], "unknown": []})
    found = world.condition(world.table, "BucketSafe")
    assert (found["status"], found["message"]) == ("True", "old versions stay"), "it costs, and damages nothing"
