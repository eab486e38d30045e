/**
 * Keeps the tables of a Hive Metastore as a Hudi table is, with Hudi's own tool, and says what
 * another catalog should have of it.
 *
 * <p>It uses no other package, and no other package uses it; the agent's Python calls it. It only
 * reads the table, changes nothing in a metastore but tables at this table's own location, drops
 * none but those that this HudiTable has made, and returns in time however the metastore behaves.
 */
package io.hudioperator.catalog;
