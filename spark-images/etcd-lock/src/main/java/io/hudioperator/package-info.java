/**
 * What configuration names, and nothing else: values of Hudi's, Hadoop's and Spark's properties, and what Python calls through py4j.
 *
 * <p>Each class here is loaded by its name, so none may be renamed or moved without the place that names it; a test compares the two. They
 * may use every package below, and no package uses them. The packages, from the ground up: {@code contract}, {@code etcd},
 * {@code protocol}, {@code session}, then {@code timeline}, {@code commit} and {@code statements}; {@code workarounds} stands apart. The
 * invariants I1 to I13 are those of {@code docs/design/protocol.md}, the findings F1 and later those of {@code docs/design/findings.md}.
 */
package io.hudioperator;
