package io.hudioperator.timeline;

import io.hudioperator.contract.TablePath;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/** The role of a path in a Hudi timeline (layout 2, table version 8 and later). */
public final class TimelinePath {
    enum Kind {
        /** {@code <t>.<action>.requested} */
        REQUESTED,
        /** {@code <t>.inflight} or {@code <t>.<action>.inflight} */
        INFLIGHT,
        /** {@code <t>_<c>.<action>} */
        COMPLETED,
        /** Archived timeline, manifests, the folder itself. */
        OTHER,
        /**
         * A timeline file at the location that older table versions used. Nothing writes there any
         * more.
         */
        LEGACY
    }

    private static final String META = "/.hoodie/";
    private static final String TIMELINE = "timeline";
    private static final String MDT = "metadata/.hoodie/";
    private static final Pattern TEMPORARY =
            Pattern.compile("(.+)\\.(?:tmp|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})");
    private static final Pattern REQUESTED = Pattern.compile("(\\d{14,17})\\.(\\w+)\\.requested");
    private static final Pattern INFLIGHT = Pattern.compile("(\\d{14,17})(?:\\.(\\w+))?\\.inflight");
    private static final Pattern COMPLETED = Pattern.compile("(\\d{14,17})_(\\d{14,17})\\.(\\w+)");
    private static final Pattern DATED = Pattern.compile("(\\d{14,17})\\d*[._].*");

    final String base;
    final Kind kind;
    /** Whether the path belongs to the metadata table below the table. */
    final boolean metadataTable;
    /**
     * Whether it is the file {@code <name>.<uuid>} that Hudi writes first on file systems with a
     * rename.
     */
    final boolean temporary;
    /** Requested time in the name, without the metadata table's suffix; null when there is none. */
    final String instant;
    /** Completion time; null unless COMPLETED. */
    final String completion;

    final String action;

    private TimelinePath(
            String base,
            Kind kind,
            boolean metadataTable,
            boolean temporary,
            String instant,
            String completion,
            String action) {
        this.base = base;
        this.kind = kind;
        this.metadataTable = metadataTable;
        this.temporary = temporary;
        this.instant = instant;
        this.completion = completion;
        this.action = action;
    }

    /** Null when the path has nothing to do with a timeline. */
    public static TimelinePath of(Path path) {
        String text = path.toString();
        int meta = text.indexOf(META);
        if (meta < 0) {
            return null;
        }
        String base = text.substring(0, meta);
        String rest = text.substring(meta + META.length());
        boolean mdt = rest.startsWith(MDT);
        if (mdt) {
            rest = rest.substring(MDT.length());
        }
        if (rest.equals(TIMELINE)) {
            return new TimelinePath(base, Kind.OTHER, mdt, false, null, null, "");
        }
        if (!rest.startsWith(TIMELINE + "/")) {
            boolean legacy = rest.indexOf('/') < 0 && DATED.matcher(rest).matches();
            return legacy ? new TimelinePath(base, Kind.LEGACY, mdt, false, null, null, "") : null;
        }
        return ofName(base, mdt, rest.substring(TIMELINE.length() + 1));
    }

    private static TimelinePath ofName(String base, boolean mdt, String fullName) {
        Matcher suffix = TEMPORARY.matcher(fullName);
        boolean temporary = suffix.matches();
        String name = temporary ? suffix.group(1) : fullName;
        Matcher m = REQUESTED.matcher(name);
        if (m.matches()) {
            return new TimelinePath(base, Kind.REQUESTED, mdt, temporary, m.group(1), null, m.group(2));
        }
        m = INFLIGHT.matcher(name);
        if (m.matches()) {
            return new TimelinePath(base, Kind.INFLIGHT, mdt, temporary, m.group(1), null, m.group(2));
        }
        m = COMPLETED.matcher(name);
        if (m.matches()) {
            return new TimelinePath(base, Kind.COMPLETED, mdt, temporary, m.group(1), m.group(2), m.group(3));
        }
        m = DATED.matcher(name);
        String instant = m.matches() ? m.group(1) : null;
        return new TimelinePath(base, Kind.OTHER, mdt, temporary, instant, null, "");
    }

    /**
     * Whether the path contains the table's timeline, so that deleting or moving it would affect
     * the timeline.
     */
    static boolean contains(Path path, String basePath) {
        String base = TablePath.comparable(basePath) + "/.hoodie/";
        String outer = TablePath.comparable(path.toString()) + "/";
        return (base + TIMELINE + "/").startsWith(outer) || (base + MDT + TIMELINE + "/").startsWith(outer);
    }

    /**
     * The metadata table, or the part of it that contains its timeline. Hudi rebuilds it under the
     * lock.
     */
    static boolean isMetadataTable(Path path, String basePath) {
        return TablePath.comparable(path.toString()).startsWith(TablePath.comparable(basePath) + "/.hoodie/metadata");
    }
}
