"""Imports that the Java module's packages may use: the rules of HouseTest.

Those of Python have tests that break each contract of import-linter by itself
(tests/tiers/unit/layout/test_import_contracts.py).
"""

from __future__ import annotations

from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import HOUSE, Edit, mutation

_KEY_VALUE = "public final class KeyValue {\n"

RULES = (
    mutation(
        "etcds-client-uses-the-protocol",
        HOUSE,
        "a package uses one that is above it",
        j("KeyValue", _KEY_VALUE, f"{_KEY_VALUE}    public static io.hudioperator.protocol.Gate gate;\n"),
        t("HouseTest.eachPackageUsesOnlyWhatIsBelowIt"),
    ),
    mutation(
        "two-classes-use-each-other",
        HOUSE,
        "two classes of one package use each other",
        j("KeyValue", _KEY_VALUE, f"{_KEY_VALUE}    public static EtcdClient client;\n"),
        t("HouseTest.noClassesUseEachOtherInACircle"),
    ),
    mutation(
        "etcds-client-knows-paths",
        HOUSE,
        "the client of etcd depends on Hadoop",
        j("KeyValue", _KEY_VALUE, f"{_KEY_VALUE}    public static org.apache.hadoop.fs.Path path;\n"),
        t("HouseTest.etcdsClientKnowsNothingOfTables"),
    ),
    mutation(
        "a-class-in-the-root-that-nobody-names",
        HOUSE,
        "a class in the root is named by no configuration and by no call of the runtime",
        Edit(
            "spark-images/hudi_runtime/agent/store_probe.py",
            "context._jvm.io.hudioperator.StoreProbe.missing(",
            "context._jvm.io.hudioperator.session.StoreProbe.missing(",
        ),
        t("HouseTest.theRootHoldsWhatConfigurationNamesAndNothingElse"),
    ),
)
