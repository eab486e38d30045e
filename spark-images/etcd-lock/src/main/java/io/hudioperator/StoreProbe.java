package io.hudioperator;

import io.hudioperator.etcd.Pause;
import io.hudioperator.protocol.TableStorage;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Probes a table's store, before the table is used, for the properties that the protocol depends on
 * (F61). One probe does not prove that a property always holds; it detects a store that lacks it by
 * design. docs/operate/stores.md says what depends on each property.
 */
public final class StoreProbe {
    static final String FOLDER = ".hudi-operator-probe";
    private static final int LENGTH = 100_000; // larger than a file system's buffers
    private static final long WATCHED_MILLIS = 300;

    private final FileSystem fs;
    private final Path folder;
    private final boolean renames;

    /**
     * {@code renames}: whether Hudi makes whole files visible by a rename on this store, not by
     * {@code close()}.
     */
    StoreProbe(FileSystem fs, Path base, boolean renames) {
        this.fs = fs;
        this.folder = new Path(new Path(base, FOLDER), UUID.randomUUID().toString());
        this.renames = renames;
    }

    /**
     * Returns the properties that the store of this base path lacks, each with what was observed;
     * empty when none is missing. Writes into a separate folder below the base path and removes it.
     * Throws when the store does not answer; the result is then unknown.
     */
    public static List<String> missing(String basePath, Configuration conf) throws IOException {
        Path base = new Path(basePath);
        return new StoreProbe(base.getFileSystem(conf), base, TableStorage.renames(base, conf)).missing();
    }

    private interface Check {
        /** Returns the violation that was observed; empty when there is none. */
        String broken() throws IOException;
    }

    List<String> missing() throws IOException {
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("list after write", this::listAfterWrite);
        if (renames) {
            checks.put("a rename moves the whole file", this::rename);
        } else {
            checks.put("not visible before close", this::beforeClose);
        }
        checks.put("never visible empty or in part", this::whole);
        checks.put("an existing file is not replaced unasked", this::existing);
        checks.put("read after overwrite", this::overwrite);
        checks.put("list after delete", this::listAfterDelete);
        checks.put("names differ by case", this::names);
        List<String> missing = new ArrayList<>();
        fs.delete(folder.getParent(), true); // left by a probe that died
        try {
            for (Map.Entry<String, Check> check : checks.entrySet()) {
                String seen = check.getValue().broken();
                if (!seen.isEmpty()) {
                    missing.add(check.getKey() + ": " + seen);
                }
            }
        } finally {
            fs.delete(folder.getParent(), true);
        }
        return missing;
    }

    private String listAfterWrite() throws IOException {
        Path file = write("listed", 'a', false);
        long length = listed(file);
        if (length != LENGTH) {
            return length < 0
                    ? "a file that was closed is not in the next listing"
                    : "a file of " + LENGTH + " bytes is listed with " + length;
        }
        return holds(file, 'a') ? "" : "a file that was closed has other content when read";
    }

    private String beforeClose() throws IOException {
        Path file = new Path(folder, "unclosed");
        String seen = "";
        try (OutputStream out = fs.create(file, false)) {
            out.write(content('b'));
            if (listed(file) >= 0 || fs.exists(file)) {
                seen = "a file is there before it was closed";
            }
        }
        return seen;
    }

    private String whole() throws IOException {
        Path file = new Path(folder, "whole");
        Watch watch = new Watch(file);
        watch.start();
        if (renames) {
            fs.rename(write("whole.tmp", 'c', false), file);
        } else {
            write(file.getName(), 'c', false);
        }
        long odd = watch.end();
        return odd < 0 ? "" : "a file of " + LENGTH + " bytes was seen with " + odd;
    }

    private String rename() throws IOException {
        Path from = write("from", 'd', false);
        Path to = new Path(folder, "to");
        if (!fs.rename(from, to)) {
            return "a rename to a free name is refused";
        }
        if (listed(from) >= 0) {
            return "the old name is still there after a rename";
        }
        return listed(to) == LENGTH && holds(to, 'd') ? "" : "the new name does not have the whole file after a rename";
    }

    private String existing() throws IOException {
        Path file = write("existing", 'e', false);
        try {
            write(file.getName(), 'f', false);
        } catch (FileAlreadyExistsException e) {
            return holds(file, 'e') ? "" : "a refused create has changed the file";
        }
        return "a create without overwrite replaces a file";
    }

    private String overwrite() throws IOException {
        Path file = write("overwritten", 'g', false);
        holds(file, 'g'); // so that a cache, if there is one, holds the file
        write(file.getName(), 'h', true);
        return holds(file, 'h') ? "" : "a file that was replaced still reads as before";
    }

    private String listAfterDelete() throws IOException {
        Path file = write("deleted", 'i', false);
        listed(file);
        fs.delete(file, false);
        return listed(file) >= 0 || fs.exists(file) ? "a file that was deleted is in the next listing" : "";
    }

    private String names() throws IOException {
        write("case", 'j', false);
        return fs.exists(new Path(folder, "CASE")) ? "a file is found under its name in other case" : "";
    }

    private Path write(String name, char letter, boolean overwrite) throws IOException {
        Path file = new Path(folder, name);
        try (OutputStream out = fs.create(file, overwrite)) {
            out.write(content(letter));
        }
        return file;
    }

    private static byte[] content(char letter) {
        byte[] bytes = new byte[LENGTH];
        Arrays.fill(bytes, (byte) letter);
        return bytes;
    }

    private boolean holds(Path file, char letter) throws IOException {
        try (FSDataInputStream in = fs.open(file)) {
            return Arrays.equals(in.readAllBytes(), content(letter));
        } catch (FileNotFoundException e) {
            return false;
        }
    }

    /** Length of a file as the listing of its folder reports it; -1 when it is not listed. */
    private long listed(Path file) throws IOException {
        try {
            for (FileStatus status : fs.listStatus(file.getParent())) {
                if (status.getPath().getName().equals(file.getName())) {
                    return status.getLen();
                }
            }
            return -1;
        } catch (FileNotFoundException e) {
            return -1; // the folder does not exist yet
        }
    }

    /** Lists the folder repeatedly while a file is created. */
    private final class Watch extends Thread {
        private final Path file;
        private volatile boolean over;
        private volatile long odd = -1;
        private volatile IOException failure;

        Watch(Path file) {
            super("store-probe");
            setDaemon(true);
            this.file = file;
        }

        @Override
        public void run() {
            try {
                while (!over) {
                    long length = listed(file);
                    if (length >= 0 && length != LENGTH) {
                        odd = length;
                    }
                    Pause.millis(1);
                }
            } catch (IOException e) {
                failure = e;
            }
        }

        /**
         * Returns the wrong length that was observed; -1 when there is none. Waits first, because a
         * store may still change a file after it has acknowledged it.
         */
        long end() throws IOException {
            Pause.millis(WATCHED_MILLIS);
            over = true;
            try {
                join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IOException("interrupted", e);
            }
            if (failure != null) {
                throw failure;
            }
            return odd;
        }
    }
}
