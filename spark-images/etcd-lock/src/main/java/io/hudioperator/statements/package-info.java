/**
 * Rules for a user's program: each plan of Spark SQL is inspected before it runs, and anything that
 * the list in {@code statements.json} does not name is refused.
 *
 * <p>It uses {@code session} and {@code contract}, and no other package uses it; the Spark
 * extension in the root calls it. It guarantees that the state of the table that a thread reads is
 * recorded before the thread gets its rows (I9, F40), and that an unknown kind of read is refused
 * (I11).
 */
package io.hudioperator.statements;
