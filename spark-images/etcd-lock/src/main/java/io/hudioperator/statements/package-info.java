/**
 * What a user's program may do: each plan of Spark SQL is looked at before it runs, and what the list in {@code statements.json} does not name
 * is refused.
 *
 * <p>It uses {@code session} and {@code contract}, and no other package uses it; the Spark extension in the root calls it. Kept here: which
 * state of the table a thread has read is noted before its rows are (I9, F40), and a read that is not understood is refused (I11).
 */
package io.hudioperator.statements;
