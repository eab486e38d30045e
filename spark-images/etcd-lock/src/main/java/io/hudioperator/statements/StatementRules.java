package io.hudioperator.statements;

import io.hudioperator.contract.InsertOptions;
import io.hudioperator.contract.TablePath;
import io.hudioperator.session.OpenSessions;
import io.hudioperator.session.Session;
import io.hudioperator.session.TableReads;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.BaseFileOnlyRelation;
import org.apache.hudi.HoodieBaseRelation;
import org.apache.hudi.HoodieFileIndex;
import org.apache.hudi.HoodieSchemaConversionUtils;
import org.apache.hudi.common.config.DFSPropertiesConfiguration;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.WriteConcurrencyMode;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FileSourceOptions;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.DropNamespace;
import org.apache.spark.sql.catalyst.plans.logical.DropTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.RowDataSourceScanExec;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.command.DropDatabaseCommand;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import org.apache.spark.sql.execution.streaming.StreamingRelation;
import org.apache.spark.sql.hudi.command.CallProcedureHoodieCommand;
import org.apache.spark.sql.hudi.command.DeleteHoodieTableCommand;
import org.apache.spark.sql.hudi.command.DropHoodieTableCommand;
import org.apache.spark.sql.hudi.command.InsertIntoHoodieTableCommand;
import org.apache.spark.sql.hudi.command.MergeIntoHoodieTableCommand;
import org.apache.spark.sql.hudi.command.UpdateHoodieTableCommand;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Inspects each plan before it runs: which rows of a table this process has read ({@link
 * TableReads}), and whether a statement may run at all. A statement that is not in the list ({@link
 * Statements}) may not.
 */
public final class StatementRules {
    private static final String HUDI = "org.apache.spark.sql.hudi.";
    private static final String HUDI_CATALOG = "org.apache.spark.sql.hudi.catalog.";
    private static final String MERGES = "hoodie.datasource.merge.type";
    private static final String MERGED = "payload_combine";
    private static final String SKIPPING = "hoodie.enable.data.skipping";
    private static final String SCHEMA = "hoodie.avro.schema";
    private static final String OPERATION = "hoodie.datasource.write.operation";
    private static final String PARTITIONS_TO_DELETE = "hoodie.datasource.write.partitions.to.delete";
    private static final String IGNORE_CORRUPT = "spark.sql.files.ignoreCorruptFiles";
    private static final String QUERY_TYPE = "hoodie.datasource.query.type";
    private static final String LISTING = "hoodie.datasource.read.file.index.listing.mode";
    /** Partitions that the catalog does not have, or files that were replaced meanwhile. */
    private static final List<String> LISTED_OTHERWISE = List.of(
            "hoodie.datasource.read.file.index.list.partitions.from.catalog",
            "hoodie.datasource.read.file.index.optimize.listing.using.path.filter");

    private static final String IGNORE_MISSING = "spark.sql.files.ignoreMissingFiles";

    private static final String INDEX = "hoodie.index.type";
    private static final String CONCURRENCY = "hoodie.write.concurrency.mode";
    private static final String DELETED = HoodieRecord.HOODIE_IS_DELETED_FIELD;
    private static final String INTERNAL = "_hoodie.";

    /** Commands that write. They read their input while they run, or it is part of them. */
    private static final Set<String> WRITES = Set.of(
            "SaveIntoDataSourceCommand",
            "UpdateHoodieTableCommand",
            "DeleteHoodieTableCommand",
            "MergeIntoHoodieTableCommand",
            "InsertIntoHoodieTableCommand");

    /** Classes of Spark that plan a query for later, or for its text. */
    private static final Set<String> PLANNERS = Set.of(
            "org.apache.spark.sql.execution.CacheManager", "org.apache.spark.sql.execution.command.ExplainCommand");

    private static final String SPARKS_CATALOG = "org.apache.spark.sql.internal.CatalogImpl";

    /** Relations of Hudi that list instants and files, and read no row. */
    private static final Set<String> LISTINGS = Set.of("TimelineRelation", "FileSystemRelation");

    private static final Set<String> CHANGES = Set.of("UpdateHoodieTableCommand", "MergeIntoHoodieTableCommand");

    private final SparkSession spark;
    private final Set<Object> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    /** Whether a read belongs only to a statement that writes. */
    private boolean byStatement;
    /** Whether the statement of this plan gives data that it has read to its program. */
    private boolean observes;
    /** Reads of the statement of this plan. */
    private final List<Runnable> handed = new ArrayList<>();

    private StatementRules(SparkSession spark, boolean byStatement) {
        this.spark = spark;
        this.byStatement = byStatement;
    }

    /**
     * @throws org.apache.hudi.exception.HoodieException for a statement that may not run; nothing
     *     has been done then
     */
    public static void check(SparkSession spark, LogicalPlan plan) {
        if (OpenSessions.hasWriter()) {
            boolean inner = isInStatement();
            StatementRules rules = new StatementRules(spark, inner);
            rules.walk(plan);
            if (rules.observes && !inner) {
                rules.handed.forEach(Runnable::run);
            }
        }
    }

    /** Notes the reads of a plan that is about to run, those of cached frames in it, too. */
    static void executed(LogicalPlan plan) {
        if (!OpenSessions.hasWriter()) {
            return;
        }
        boolean byStatement = isInStatement() || isStatementsQuery();
        boolean rows = !isOnlyPlanned();
        Iterator<LogicalPlan> leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            LogicalPlan leaf = leaves.next();
            if (leaf instanceof LogicalRelation) {
                read(((LogicalRelation) leaf).relation(), byStatement, rows);
            } else if (leaf instanceof InMemoryRelation) {
                cached(((InMemoryRelation) leaf).cachedPlan(), byStatement, rows);
            }
        }
    }

    private static void cached(SparkPlan plan, boolean byStatement, boolean rows) {
        SparkPlan planned = plan instanceof AdaptiveSparkPlanExec ? ((AdaptiveSparkPlanExec) plan).initialPlan() : plan;
        Iterator<SparkPlan> leaves = planned.collectLeaves().iterator();
        while (leaves.hasNext()) {
            SparkPlan leaf = leaves.next();
            if (leaf instanceof FileSourceScanExec) {
                read(((FileSourceScanExec) leaf).relation(), byStatement, rows);
            } else if (leaf instanceof RowDataSourceScanExec) {
                read(((RowDataSourceScanExec) leaf).relation(), byStatement, rows);
            } else if (leaf instanceof InMemoryTableScanExec) {
                cached(((InMemoryTableScanExec) leaf).relation().cachedPlan(), byStatement, rows);
            }
        }
    }

    /**
     * Refuses {@code INSERT INTO … BY NAME} of a Hudi table. Hudi does not know of it, and where a
     * name of the query is not the table's, it takes the columns by their position (F312).
     */
    static void requireByPosition(SparkSession spark, LogicalPlan parsed) {
        if (parsed instanceof InsertIntoStatement) {
            InsertIntoStatement insert = (InsertIntoStatement) parsed;
            if (insert.byName()
                    && insert.table() instanceof UnresolvedRelation
                    && OpenSessions.hasWriter()
                    && new StatementRules(spark, false).namesHudi((UnresolvedRelation) insert.table())) {
                throw Statements.refusal(
                        "INSERT INTO … BY NAME", "INSERT INTO table (columns) SELECT the columns in this order");
            }
        }
        Iterator<LogicalPlan> inner = parsed.children().iterator();
        while (inner.hasNext()) {
            requireByPosition(spark, inner.next());
        }
    }

    private boolean namesHudi(UnresolvedRelation table) {
        List<String> name = MergeKeys.list(table.multipartIdentifier());
        int last = name.size() - 1;
        return last == 1 && name.get(0).equalsIgnoreCase("hudi") // hudi.`path`
                || isHudi(
                        new TableIdentifier(name.get(last), scala.Option.apply(last == 0 ? null : name.get(last - 1))));
    }

    private static boolean isInStatement() {
        return StackWalker.getInstance()
                .walk(frames -> frames.map(StackWalker.StackFrame::getClassName).anyMatch(StatementRules::isWrite));
    }

    /** Whether a plan is made that nobody runs now: for {@code cache()} or {@code EXPLAIN}. */
    private static boolean isOnlyPlanned() {
        return StackWalker.getInstance()
                .walk(frames -> frames.map(StackWalker.StackFrame::getClassName).anyMatch(PLANNERS::contains));
    }

    /**
     * Whether Spark analyzes a view that is replaced or dropped, to remove its rows from the cache.
     * The program does not get that plan, and it may be older than what was read since (F597).
     */
    private static boolean isUncached() {
        return StackWalker.getInstance()
                .walk(frames -> frames.anyMatch(frame -> frame.getClassName().equals(SPARKS_CATALOG)
                        && frame.getMethodName().startsWith("uncache")));
    }

    /**
     * Whether a plan is made for a statement that writes. Spark plans the query of most of them
     * before it runs them, and subqueries in separate threads (F440). Hudi runs no query of the
     * table in a separate execution within a statement.
     */
    private static boolean isStatementsQuery() {
        scala.Option<SparkSession> active = SparkSession.getActiveSession();
        String id =
                active.isEmpty() ? null : active.get().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
        QueryExecution execution = id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
        return execution != null && isWrite(execution.logical());
    }

    private static boolean isWrite(QueryPlan<?> plan) {
        return WRITES.contains(plan.getClass().getSimpleName());
    }

    private static boolean isWrite(String className) {
        return className.equals(OrderedDeletes.class.getName())
                || WRITES.contains(className.substring(className.lastIndexOf('.') + 1));
    }

    /**
     * The path of the table that one of {@link #WRITES} writes; null when none of Hudi's, or not
     * known.
     */
    private String target(LogicalPlan command) {
        HoodieTableMetaClient table = null;
        if (command instanceof SaveIntoDataSourceCommand) {
            scala.Option<String> path =
                    ((SaveIntoDataSourceCommand) command).options().get("path");
            return path.isEmpty() ? null : path.get();
        } else if (command instanceof InsertIntoHoodieTableCommand) {
            table = Relations.target(((InsertIntoHoodieTableCommand) command).logicalRelation(), spark);
        } else if (command instanceof UpdateHoodieTableCommand) {
            table = Relations.target(((UpdateHoodieTableCommand) command).ut().table(), spark);
        } else if (command instanceof MergeIntoHoodieTableCommand) {
            table = Relations.target(
                    ((MergeIntoHoodieTableCommand) command).mergeInto().targetTable(), spark);
        } else if (command instanceof DeleteHoodieTableCommand) {
            table = ((DeleteHoodieTableCommand) command).catalogTable().metaClient();
        }
        return table == null ? null : table.getBasePath().toString();
    }

    private void walk(QueryPlan<?> plan) {
        if (plan instanceof CommandResult || !seen.add(plan)) { // the plan of a result was checked before it ran
            return;
        }
        if (plan instanceof Command) {
            judge((LogicalPlan) plan);
            if (!byStatement && isWrite(plan)) {
                OpenSessions.statementBegins(target((LogicalPlan) plan));
                byStatement = true;
            }
        }
        observes |= byStatement && plan instanceof CollectMetrics;
        if (plan instanceof LogicalRelation) {
            read(((LogicalRelation) plan).relation(), true, this::analyzed);
        } else if (plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof FileTable) {
            requireNoFiles(((FileTable) ((DataSourceV2Relation) plan).table()).fileIndex(), true);
        } else if (plan instanceof StreamingRelation) {
            requireNoStream((StreamingRelation) plan);
        } else if (plan instanceof WriteToStream) {
            requireNoSink(((WriteToStream) plan).sink());
        }
        if (plan instanceof InsertIntoHoodieTableCommand) { // its target is not a source
            walk(((InsertIntoHoodieTableCommand) plan).query());
            return;
        }
        if (plan instanceof Product) {
            elements((Product) plan, 0).stream()
                    .filter(LogicalPlan.class::isInstance)
                    .forEach(p -> walk((LogicalPlan) p));
        }
        each(plan.children());
        each(plan.innerChildren());
        each(plan.subqueries());
    }

    /** A relation is in a plan that was analyzed. */
    private void analyzed(TableReads reads, TableReads.Base base) {
        if (isUncached()) {
            return;
        }
        read(reads, base, byStatement, false);
        handed.add(() -> reads.handed(base));
    }

    private void each(Seq<?> plans) {
        Iterator<?> all = plans.iterator();
        while (all.hasNext()) {
            Object next = all.next();
            if (next instanceof QueryPlan) {
                walk((QueryPlan<?>) next);
            }
        }
    }

    /** The elements of a node, and their elements. */
    private static List<Object> elements(Product node, int depth) {
        List<Object> found = new ArrayList<>();
        Iterator<Object> parts = node.productIterator();
        while (parts.hasNext()) {
            Object part = parts.next();
            found.add(part);
            if (depth == 0 && part instanceof Product && !(part instanceof LogicalPlan)) {
                found.addAll(elements((Product) part, 1));
            }
        }
        return found;
    }

    // ---- reads

    /**
     * @param byStatement whether the rows belong only to a statement that writes
     * @param rows whether the query is executed
     */
    public static void read(BaseRelation relation, boolean byStatement, boolean rows) {
        // each file was compared when the relation was analyzed
        read(relation, !rows, (reads, base) -> read(reads, base, byStatement, rows));
    }

    private static void read(BaseRelation relation, boolean each, BiConsumer<TableReads, TableReads.Base> reader) {
        Object source = relation instanceof HadoopFsRelation ? ((HadoopFsRelation) relation).location() : relation;
        if (!source.getClass().getName().startsWith("org.apache.hudi.")) {
            if (source instanceof FileIndex) {
                requireNoFiles((FileIndex) source, each);
            }
            return;
        } else if (LISTINGS.contains(source.getClass().getSimpleName())) {
            return;
        }
        if (Relations.isEmpty(source)) {
            TableReads.Base nothing = new TableReads.Base("0", "0", Set.of());
            OpenSessions.all().stream()
                    .map(Session::reads)
                    .filter(TableReads::mayHaveBeenEmpty)
                    .forEach(r -> reader.accept(r, nothing));
            return;
        }
        HoodieTableMetaClient table = Relations.table(source);
        requireNoMetadata(table.getBasePath().toString());
        Session session = OpenSessions.byPath(table.getBasePath().toString());
        if (session != null) {
            requireLogFiles(source, table);
            requireMerged(source, table);
            requireAllFiles(options(source));
            Relations.requireListedAtOnce(source, table);
            TableReads.Base base = TableReads.Base.of(table.getActiveTimeline());
            if (OrderedDeletes.onlyFinds(options(source))) {
                session.reads().readByDelete(base);
            } else {
                reader.accept(session.reads(), base);
            }
        }
    }

    private static void read(TableReads reads, TableReads.Base base, boolean byStatement, boolean rows) {
        if (byStatement) {
            reads.readByStatement(base);
        } else if (rows) {
            reads.read(base);
        } else {
            reads.queried(base);
        }
    }

    /**
     * Refuses to read the table as files: that would return old versions of rows and uncommitted
     * rows, and the time of the read would be unknown (F79). Spark also reads what is below a
     * folder (F426).
     */
    private static void requireNoFiles(FileIndex files, boolean each) {
        Iterator<Path> roots = files.rootPaths().iterator();
        boolean above = false;
        while (roots.hasNext()) {
            String path = roots.next().toString();
            requireNotAmongData(path);
            String outer = TablePath.comparable(path).replaceAll("/+$", "") + "/";
            above |= OpenSessions.all().stream()
                    .anyMatch(
                            session -> TablePath.comparable(session.basePath()).startsWith(outer));
        }
        for (String file : above && each ? files.inputFiles() : new String[0]) {
            requireNotAmongData(new Path(URI.create(file)).toString());
        }
    }

    /**
     * Refuses to read the metadata table. Its keys and values would be stale, and nobody would know
     * (F445).
     */
    private static void requireNoMetadata(String path) {
        String data = path.replaceAll("/[.]hoodie/metadata/*$", "");
        if (!data.equals(path) && OpenSessions.byPath(data) != null) {
            throw Statements.refusal(
                    "a read of the metadata table of the table that this program writes", "a query of the table");
        }
    }

    private static void requireNotAmongData(String path) {
        if (isAmongData(path)) {
            throw Statements.refusal(
                    "reading files of the table that this program writes, " + path, "spark.read.format(\"hudi\")");
        }
    }

    private static boolean isAmongData(String path) {
        String inner = TablePath.comparable(path) + "/";
        return OpenSessions.all().stream()
                .map(session -> TablePath.comparable(session.basePath()) + "/")
                .anyMatch(table -> inner.startsWith(table) && !inner.startsWith(table + ".hoodie/"));
    }

    private static void requireNoStream(StreamingRelation stream) {
        scala.Option<String> path = stream.dataSource().options().get("path");
        if (path.isDefined() && OpenSessions.byPath(path.get()) != null) {
            throw Statements.refusal(
                    "a stream of the table that this program writes",
                    "a python source with an Update, or read_table() for each batch");
        }
    }

    /**
     * Refuses Hudi's streaming sink. The sink skips a batch whose number it has already seen in the
     * table, from any query, and ends the JVM when a write is refused (F89).
     */
    private static void requireNoSink(Table sink) {
        if (sink.getClass().getName().startsWith("org.apache.hudi.")) {
            throw Statements.refusal(
                    "df.writeStream.format(\"hudi\")", "writeStream.foreachBatch with df.write.format(\"hudi\")");
        }
    }

    /**
     * Refuses a query that reads base files only. It misses what others have committed to log
     * files, and rows made from its result would overwrite those commits (F90).
     */
    private static void requireLogFiles(Object source, HoodieTableMetaClient table) {
        boolean left = source instanceof HoodieFileIndex
                ? !((HoodieFileIndex) source).includeLogFiles()
                : source instanceof BaseFileOnlyRelation;
        if (left && table.getTableType() == HoodieTableType.MERGE_ON_READ) {
            throw Statements.refusal(
                    "a read_optimized query of the table that this program writes",
                    "a snapshot query, which also reads log files");
        }
    }

    /**
     * Without merging, a record has a row for each of its versions. A row made from an old one
     * would overwrite the newest (F105).
     */
    private static void requireMerged(Object source, HoodieTableMetaClient table) {
        scala.Option<String> merges = options(source).get(MERGES);
        if (merges.isDefined()
                && !merges.get().equals(MERGED)
                && table.getTableType() == HoodieTableType.MERGE_ON_READ) {
            throw Statements.refusal(
                    "a read of the table that this program writes, with " + MERGES + "=" + merges.get(),
                    MERGES + "=" + MERGED + ", the default");
        }
    }

    /**
     * A read that leaves out files misses rows, and what is made from the rest is wrong: keys that
     * are there count as new, and a statement does not change all that it names. Spark leaves out
     * files that it cannot read, Hudi those that statistics of columns rule out (F104, F166).
     */
    private static void requireAllFiles(scala.collection.immutable.Map<String, String> options) {
        FileSourceOptions files = new FileSourceOptions(options); // the session's setting where there is no option
        scala.Option<String> skipping = options.get(SKIPPING);
        if (files.ignoreCorruptFiles()) {
            throw leavesOut(IGNORE_CORRUPT);
        }
        if (files.ignoreMissingFiles()) {
            throw leavesOut(IGNORE_MISSING);
        }
        if (skipping.isDefined() && Boolean.parseBoolean(skipping.get())) {
            throw leavesOut(SKIPPING);
        }
        for (String setting : LISTED_OTHERWISE) {
            if (options.get(setting).exists(Boolean::parseBoolean)) {
                throw leavesOut(setting);
            }
        }
        boolean rows = !options.get(QUERY_TYPE).contains("incremental");
        if (rows && options.get(LISTING).exists("lazy"::equalsIgnoreCase)) {
            throw leavesOut(LISTING, "lazy", "eager");
        }
    }

    private static RuntimeException leavesOut(String setting) {
        return leavesOut(setting, "true", "false");
    }

    private static RuntimeException leavesOut(String setting, String refused, String needed) {
        return Statements.refusal(
                "a read of the table that this program writes, with " + setting + "=" + refused,
                setting + "=" + needed + ", and " + refused + " only as an option of reads that need it");
    }

    private static scala.collection.immutable.Map<String, String> options(Object source) {
        if (source instanceof HoodieFileIndex) {
            return ((HoodieFileIndex) source).options();
        }
        return source instanceof HoodieBaseRelation
                ? ((HoodieBaseRelation) source).optParams()
                : scala.collection.immutable.Map$.MODULE$.empty();
    }

    // ---- statements

    private void judge(LogicalPlan command) {
        String name = command.getClass().getSimpleName();
        if (command instanceof CallProcedureHoodieCommand) {
            Statements.procedure(((CallProcedureHoodieCommand) command).procedure())
                    .require();
        } else if (command instanceof SaveIntoDataSourceCommand) {
            save((SaveIntoDataSourceCommand) command);
        } else if (command instanceof InsertIntoHadoopFsRelationCommand) {
            requireOutside(
                    ((InsertIntoHadoopFsRelationCommand) command).outputPath().toString());
        } else if (command instanceof DropTable) {
            drop((DropTable) command);
        } else if (command instanceof DropNamespace) {
            drop((DropNamespace) command);
        } else if (command instanceof DropDatabaseCommand) {
            drop((DropDatabaseCommand) command);
        } else if (command instanceof DropHoodieTableCommand) {
            DropHoodieTableCommand drop = (DropHoodieTableCommand) command;
            drop(metadata(drop.tableIdentifier()), drop.purge());
        } else if (command.getClass().getName().startsWith(HUDI) || concernsHudi(command)) {
            Statements.statement(name).require();
            requireOwnSchema(
                    WRITES.contains(name) && spark.sessionState().conf().contains(SCHEMA));
            requireOwnOperation(name);
            if (command instanceof MergeIntoHoodieTableCommand) {
                MergeIntoTable merge = ((MergeIntoHoodieTableCommand) command).mergeInto();
                HoodieTableMetaClient table = Relations.target(merge.targetTable(), spark);
                MergeRules.require(merge, table == null ? null : table.getTableConfig());
                if (table != null) {
                    KnownColumns.require("MERGE INTO", merge.targetTable(), table);
                    requireDeletable("MERGE INTO with WHEN MATCHED … DELETE", table, MergeRules.deletes(merge));
                }
            } else if (command instanceof DeleteHoodieTableCommand) {
                requireDeletable(
                        "DELETE FROM",
                        ((DeleteHoodieTableCommand) command).catalogTable().metaClient(),
                        true);
            } else if (command instanceof InsertIntoHoodieTableCommand) {
                HoodieTableMetaClient table =
                        Relations.target(((InsertIntoHoodieTableCommand) command).logicalRelation(), spark);
                if (table != null) {
                    requireAllInserted(table, inSession());
                    if (((InsertIntoHoodieTableCommand) command).overwrite()
                            && isOfNonBlocking(table.getBasePath().toString())) {
                        throw Statements.refusal(
                                "INSERT OVERWRITE in a table of mode NonBlocking", "DELETE FROM, and INSERT INTO");
                    }
                }
            }
        }
        if (command.getClass().getName().startsWith(HUDI)) {
            spark.sessionState().catalog().invalidateAllCachedTables();
        }
    }

    private void save(SaveIntoDataSourceCommand save) {
        if (!save.dataSource().getClass().getName().startsWith("org.apache.hudi.")) {
            return;
        }
        requireOwnSchema(spark.sessionState().conf().contains(SCHEMA));
        String operation = "";
        Map<String, String> said = new HashMap<>();
        Iterator<scala.Tuple2<String, String>> options = save.options().iterator();
        while (options.hasNext()) {
            scala.Tuple2<String, String> option = options.next();
            String name = option._1().toLowerCase(Locale.ROOT);
            if (name.equals(OPERATION)) {
                operation = option._2().toLowerCase(Locale.ROOT);
            }
            said.put(name, option._2());
            requireOwnSchema(name.equals(SCHEMA));
            requireNotInternal(name);
        }
        SaveMode mode = save.mode();
        Statements judged = Statements.save(mode.name().toLowerCase(Locale.ROOT), operation);
        judged.require();
        if (isOfNonBlocking(said.get("path"))) {
            judged.requireInNonBlocking();
        }
        if (operation.equals("delete_partition")) {
            requireNamedPartitions(said.getOrDefault(PARTITIONS_TO_DELETE, ""));
        } else {
            requireColumns(save, operation, said);
        }
        spark.sessionState().catalog().invalidateAllCachedTables();
    }

    /**
     * Without names Hudi deletes the partitions of the rows: that of null when a column of theirs
     * has another name, and none when a value is spelled otherwise (F467). With them the rows are
     * of no weight.
     */
    private static void requireNamedPartitions(String names) {
        if (names.isBlank()) {
            throw Statements.refusal(
                    "delete_partition without the option " + PARTITIONS_TO_DELETE,
                    "it with the names of the partitions as they are in the table's folder");
        }
    }

    /** Whether this is the table of a writer in that mode. */
    private static boolean isOfNonBlocking(String path) {
        return path != null
                && OpenSessions.byPath(path) != null
                && WriteConcurrencyMode.isNonBlockingConcurrencyControl(
                        DFSPropertiesConfiguration.getGlobalProps().getString(CONCURRENCY, ""));
    }

    /**
     * For Hudi a column that rows do not have is null: without the column of the partition a delete
     * finds no record and succeeds, and an upsert writes another one into the partition of null
     * (F313).
     */
    private static void requireKeys(List<String> columns, List<String> identity) {
        for (String column : identity) {
            // The column that contains a nested field.
            if (!columns.contains(column.split("\\.", 2)[0])) {
                throw Statements.refusal(
                        "a write of rows without the column " + column
                                + ", which is part of the table's record key or partition",
                        "rows with that column (names of columns are case-sensitive here; the rows have "
                                + String.join(", ", columns) + ")");
            }
        }
    }

    /**
     * Checks the rows of a save against the table. For a delete it also checks that there is a
     * commit with rows: Hudi takes its schema from the last one, and fails without (F332).
     */
    private void requireColumns(SaveIntoDataSourceCommand save, String operation, Map<String, String> options) {
        scala.Option<String> path = save.options().get("path");
        if (path.isEmpty() || OpenSessions.byPath(path.get()) == null) {
            return;
        }
        HoodieTableMetaClient table = Relations.at(path.get(), spark);
        List<String> identity = OrderedDeletes.identity(table.getTableConfig());
        StructType rows = save.query().schema();
        List<String> names = List.of(rows.fieldNames());
        requireKeys(names, identity);
        boolean isDelete = operation.equals("delete");
        String what = isDelete ? "a delete" : "a write";
        requireDeletable("a delete", table, isDelete);
        requireDeletable("a write of rows with the column " + DELETED, table, names.contains(DELETED));
        requireAllInserted(table, options::get);
        Option<HoodieSchema> schema = OrderedDeletes.schema(table);
        if (schema.isEmpty() && isDelete) {
            throw Statements.refusal(
                    "a delete in a table that nobody has written rows to", "it after the first commit with rows");
        }
        if (schema.isPresent()) {
            StructType columns = HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(schema.get());
            KeyTypes.require(what, rows, columns, identity);
            if (!isDelete) { // which uses no other column
                SavedColumns.require(rows, columns, table.getTableConfig().getOrderingFields());
            }
        }
    }

    /**
     * A record that is written again after its deletion would get its old values back: its new
     * version is filled up from the base file (F374).
     */
    private static void requireDeletable(String what, HoodieTableMetaClient table, boolean deletes) {
        if (deletes
                && table.getTableType() == HoodieTableType.MERGE_ON_READ
                && table.getTableConfig().getPartialUpdateMode().isPresent()) {
            throw Statements.refusal(
                    what + " in a MergeOnRead table with merge.partialUpdates",
                    "a CopyOnWrite table, or a column of your own that marks deletions");
        }
    }

    /**
     * Hudi leaves out each row that has a place already. With a bucket index that is every row
     * whose bucket has a file, and in a MergeOnRead table also a key that a log file has deleted
     * (F375).
     *
     * @param options value of an option; null when it is not said
     */
    private static void requireAllInserted(HoodieTableMetaClient table, UnaryOperator<String> options) {
        String leavesOut = leavingOut(options);
        boolean isBucket =
                "BUCKET".equals(DFSPropertiesConfiguration.getGlobalProps().getString(INDEX, ""));
        if (!leavesOut.isEmpty() && (isBucket || table.getTableType() == HoodieTableType.MERGE_ON_READ)) {
            throw Statements.refusal(
                    "an insert with " + leavesOut + " in a table of type MergeOnRead or with a bucket index",
                    "an upsert, or a left_anti join with read_table()");
        }
    }

    /**
     * Hudi derives the schema of a write from its rows and from the table, and sets this option. A
     * program's own value would win: files that the write creates would lose the columns that it
     * leaves out, also for rows of others (F297).
     */
    private static void requireOwnSchema(boolean isSaid) {
        if (isSaid) {
            throw Statements.refusal(
                    "a write with " + SCHEMA, "rows with the table's columns, and a cast where a type differs");
        }
    }

    /**
     * Hudi carries a statement out as a write with an operation, for which the session's own is
     * taken: with {@code delete} an {@code UPDATE} deletes its rows. If the session leaves out rows
     * whose keys are known, {@code UPDATE} and {@code MERGE INTO} change nothing, and succeed
     * (F330).
     */
    private void requireOwnOperation(String statement) {
        if (!WRITES.contains(statement)) {
            return;
        }
        if (spark.sessionState().conf().contains(OPERATION)) {
            throw Statements.refusal(
                    "a statement with " + OPERATION + " in the session",
                    "the session without it; for INSERT INTO, hoodie.spark.sql.insert.into.operation");
        }
        String leavesOut = leavingOut(inSession());
        if (CHANGES.contains(statement) && !leavesOut.isEmpty()) {
            throw Statements.refusal(
                    "an UPDATE or MERGE INTO with " + leavesOut + " in the session",
                    "the session without it, and INSERT INTO for new rows only");
        }
    }

    /** Options of the session by their names; null for one that is not said. */
    private UnaryOperator<String> inSession() {
        return option -> spark.sessionState().conf().getConfString(option, null);
    }

    /** An option of inserts that leaves rows out, with its value; empty when none does. */
    private static String leavingOut(UnaryOperator<String> options) {
        for (Map.Entry<String, String> usual : InsertOptions.DEFAULTS.entrySet()) {
            String value = options.apply(usual.getKey());
            if (value != null && !value.equalsIgnoreCase(usual.getValue())) {
                return usual.getKey() + "=" + value;
            }
        }
        return "";
    }

    /**
     * Hudi passes such options to itself. With that of a prepared write it takes record key and
     * partition from the rows' meta columns, whatever is in their key columns (F322).
     */
    private static void requireNotInternal(String option) {
        if (option.startsWith(INTERNAL)) {
            throw Statements.refusal("a write with the internal option " + option, "the write without it");
        }
    }

    private static void requireOutside(String path) {
        String inner = TablePath.comparable(path) + "/";
        for (Session session : OpenSessions.all()) {
            if (inner.startsWith(TablePath.comparable(session.basePath()) + "/")) {
                throw Statements.refusal("writing files into the table's folder, " + path, "df.write.format(\"hudi\")");
            }
        }
    }

    /** Hudi's catalog turns this into Hudi's own command only when it runs (F64). */
    private void drop(DropTable drop) {
        if (drop.child() instanceof ResolvedIdentifier) {
            Identifier name = ((ResolvedIdentifier) drop.child()).identifier();
            String[] database = name.namespace();
            CatalogTable table = metadata(new TableIdentifier(
                    name.name(), scala.Option.apply(database.length == 0 ? null : database[database.length - 1])));
            if (isHudi(table)) {
                drop(table, drop.purge());
            }
        }
    }

    private static void drop(CatalogTable table, boolean purge) {
        boolean deletes = purge || table != null && table.tableType() == CatalogTableType.MANAGED();
        Statements.statement(deletes ? "DropHoodieTableCommand+delete" : "DropHoodieTableCommand")
                .require();
    }

    private void drop(DropNamespace drop) {
        if (drop.namespace() instanceof ResolvedNamespace) {
            ResolvedNamespace named = (ResolvedNamespace) drop.namespace();
            String folder = "";
            try {
                folder = ((SupportsNamespaces) named.catalog())
                        .loadNamespaceMetadata(
                                JavaConverters.seqAsJavaList(named.namespace()).toArray(new String[0]))
                        .getOrDefault(SupportsNamespaces.PROP_LOCATION, "");
            } catch (Exception e) { // there is no such database; Scala does not declare checked exceptions
                return;
            }
            dropDatabase(folder);
        }
    }

    private void drop(DropDatabaseCommand drop) { // with spark.sql.legacy.useV1Command
        String folder;
        try {
            folder = spark.sessionState()
                    .catalog()
                    .getDatabaseMetadata(drop.databaseName())
                    .locationUri()
                    .toString();
        } catch (Exception e) { // as above
            return;
        }
        dropDatabase(folder);
    }

    /** Spark's catalog deletes the folder of the database with all that is in it (F502). */
    private static void dropDatabase(String folder) {
        String outer = TablePath.comparable(folder) + "/";
        boolean deletes = !folder.isEmpty()
                && OpenSessions.all().stream()
                        .map(session -> TablePath.comparable(session.basePath()) + "/")
                        .anyMatch(table -> table.startsWith(outer) || outer.startsWith(table));
        Statements.statement(deletes ? "DropNamespace+delete" : "DropNamespace").require();
    }

    /** Whether a command of Spark's own names a Hudi table. */
    private boolean concernsHudi(LogicalPlan command) {
        List<Object> parts = new ArrayList<>(elements((Product) command, 0));
        Iterator<?> children = command.children().iterator();
        while (children.hasNext()) {
            Object child = children.next();
            if (child instanceof Product) {
                parts.add(child);
                parts.addAll(elements((Product) child, 0));
            }
        }
        if (command instanceof V2WriteCommand) { // its target is no child of it
            NamedRelation target = ((V2WriteCommand) command).table();
            if (target instanceof DataSourceV2Relation) {
                parts.add(((DataSourceV2Relation) target).table());
            }
        }
        return parts.stream().anyMatch(this::isHudi);
    }

    private boolean isHudi(Object part) {
        if (part instanceof TableIdentifier) {
            return isHudi(metadata((TableIdentifier) part));
        }
        if (part instanceof CatalogTable) {
            scala.Option<String> provider = ((CatalogTable) part).provider();
            return provider.isDefined() && provider.get().equalsIgnoreCase("hudi");
        }
        if (part instanceof V1Table) {
            return isHudi(((V1Table) part).v1Table());
        }
        return part instanceof Table && part.getClass().getName().startsWith(HUDI_CATALOG);
    }

    /** Null when there is no such table. */
    private CatalogTable metadata(TableIdentifier name) {
        try {
            return spark.sessionState().catalog().getTableMetadata(name);
        } catch (Exception e) { // Scala does not declare checked exceptions
            return null;
        }
    }
}
