/**
 * The classes that configuration names, and no others: values of properties of Hudi, Hadoop and
 * Spark, and the classes that Python calls through py4j.
 *
 * <p>Each class here is loaded by name, so renaming or moving it requires changing the place that
 * names it; a test compares the two. These classes may use every package below, and no package uses
 * them. The packages, from the bottom up: {@code contract}, {@code etcd}, {@code protocol}, {@code
 * session}, then {@code timeline}, {@code commit} and {@code statements}; {@code catalog}, {@code
 * databases} and {@code programs} are independent; {@code workarounds} uses no other package, and
 * {@code session} uses it; {@code testing} is for tests of whole processes alone. The invariants I1
 * to I13 are those of {@code docs/design/protocol.md}, the findings F1 and later those of {@code
 * docs/design/findings.md}.
 */
package io.hudioperator;
