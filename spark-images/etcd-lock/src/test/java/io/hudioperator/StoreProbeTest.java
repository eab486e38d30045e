package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hudioperator.etcd.Pause;
import io.hudioperator.support.TestTable;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The probe names each property that a store lacks. Each case uses a store that behaves like a
 * bucket except for one defect.
 */
class StoreProbeTest {
    @TempDir
    java.nio.file.Path base;

    @Test
    void aBucketHasEverything() throws IOException {
        assertEquals(List.of(), new StoreProbe(new Bucket(Flaw.NONE), path(), false).missing());
        assertNothingIsLeft();
    }

    @Test
    void aFileSystemWithRenamesHasEverything() throws IOException {
        assertEquals(List.of(), StoreProbe.missing(base.toUri().toString(), TestTable.conf(true)));
        assertNothingIsLeft();
    }

    /** Without renames the same file system fails the probe: a reader can see a partial file. */
    @Test
    void aFileSystemWithoutRenamesIsNoBucket() throws IOException {
        List<String> missing = new StoreProbe(path().getFileSystem(TestTable.conf(true)), path(), false).missing();
        assertEquals("not visible before close: a file is there before it was closed", missing.get(0));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "LISTS_LATE | list after write: a file that was closed is not in the next listing",
                "LISTS_EMPTY | list after write: a file of 100000 bytes is listed with 0",
                "VISIBLE_BEFORE_CLOSE | not visible before close: a file is there before it was closed",
                "EMPTY_FIRST | never visible empty or in part: a file of 100000 bytes was seen with 0",
                "IN_PARTS | never visible empty or in part: a file of 100000 bytes was seen with 50000",
                "REPLACES | an existing file is not replaced unasked: a create without overwrite replaces a file",
                "READS_OLD | read after overwrite: a file that was replaced still reads as before",
                "LISTS_DELETED | list after delete: a file that was deleted is in the next listing",
                "ANY_CASE | names differ by case: a file is found under its name in other case"
            })
    void whatABucketLacksIsNamed(Flaw flaw, String missing) throws IOException {
        List<String> found = new StoreProbe(new Bucket(flaw), path(), false).missing();
        assertEquals(missing, found.stream().filter(missing::equals).findFirst().orElse(String.valueOf(found)));
        assertNothingIsLeft();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "RENAME_COPIES | a rename moves the whole file: the old name is still there after a rename",
                "RENAME_LOSES | a rename moves the whole file: the new name does not have the whole file after a"
                        + " rename",
                "RENAME_REFUSES | a rename moves the whole file: a rename to a free name is refused",
                "RENAME_EMPTY_FIRST | never visible empty or in part: a file of 100000 bytes was seen with 0"
            })
    void whatRenamesLackIsNamed(Flaw flaw, String missing) throws IOException {
        List<String> found = new StoreProbe(new Bucket(flaw), path(), true).missing();
        assertEquals(missing, found.stream().filter(missing::equals).findFirst().orElse(String.valueOf(found)));
        assertNothingIsLeft();
    }

    /** A store that does not answer neither has nor lacks a property. */
    @Test
    void aStoreThatDoesNotAnswerIsNotJudged() {
        assertThrows(IOException.class, () -> new StoreProbe(new Bucket(Flaw.SILENT), path(), false).missing());
    }

    private Path path() {
        return new Path(base.toUri());
    }

    private void assertNothingIsLeft() {
        assertFalse(Files.exists(base.resolve(StoreProbe.FOLDER)));
    }

    enum Flaw {
        NONE,
        LISTS_LATE,
        LISTS_EMPTY,
        VISIBLE_BEFORE_CLOSE,
        EMPTY_FIRST,
        IN_PARTS,
        REPLACES,
        READS_OLD,
        LISTS_DELETED,
        ANY_CASE,
        SILENT,
        RENAME_COPIES,
        RENAME_LOSES,
        RENAME_REFUSES,
        RENAME_EMPTY_FIRST
    }

    /**
     * Local files with the behavior of a bucket: nothing is visible before {@code close()}, and
     * then the whole file; with one defect.
     */
    private static final class Bucket extends FilterFileSystem {
        private final Flaw flaw;
        private final Map<Path, byte[]> old = new HashMap<>();
        private final Set<Path> fresh = new HashSet<>();
        private final Map<Path, FileStatus> deleted = new HashMap<>();

        Bucket(Flaw flaw) throws IOException {
            super(new RawLocalFileSystem());
            this.flaw = flaw;
            fs.initialize(URI.create("file:///"), new Configuration());
        }

        @Override
        public FSDataOutputStream create(
                Path path,
                FsPermission permission,
                boolean overwrite,
                int bufferSize,
                short replication,
                long blockSize,
                Progressable progress)
                throws IOException {
            if (flaw == Flaw.SILENT) {
                throw new IOException("the store does not answer");
            }
            if (!overwrite && flaw != Flaw.REPLACES && fs.exists(path)) {
                throw new FileAlreadyExistsException(path.toString());
            }
            if (flaw == Flaw.VISIBLE_BEFORE_CLOSE) {
                fs.create(path, true).close();
            }
            return new FSDataOutputStream(
                    new ByteArrayOutputStream() {
                        @Override
                        public void close() throws IOException {
                            put(path, toByteArray());
                        }
                    },
                    null);
        }

        private void put(Path path, byte[] content) throws IOException {
            if (flaw == Flaw.READS_OLD && fs.exists(path)) {
                old.put(path, bytes(path));
            }
            if (flaw == Flaw.EMPTY_FIRST) {
                halfway(path, 0);
            } else if (flaw == Flaw.IN_PARTS) {
                halfway(path, content.length / 2);
            }
            fresh.add(path);
            write(new Path(path.getParent(), path.getName() + ".sent"), content);
            move(new Path(path.getParent(), path.getName() + ".sent"), path);
        }

        private void halfway(Path path, int length) throws IOException {
            Path part = new Path(path.getParent(), path.getName() + ".part");
            write(part, new byte[length]);
            move(part, path);
            Pause.millis(100);
        }

        private void write(Path path, byte[] content) throws IOException {
            try (FSDataOutputStream out = fs.create(path, true)) {
                out.write(content);
            }
        }

        private void move(Path from, Path to) throws IOException {
            Files.move(
                    java.nio.file.Path.of(from.toUri()),
                    java.nio.file.Path.of(to.toUri()),
                    java.nio.file.StandardCopyOption.ATOMIC_MOVE);
        }

        private byte[] bytes(Path path) throws IOException {
            try (FSDataInputStream in = fs.open(path)) {
                return in.readAllBytes();
            }
        }

        @Override
        public FSDataInputStream open(Path path, int bufferSize) throws IOException {
            if (!old.containsKey(path)) {
                return fs.open(path, bufferSize);
            }
            Path before = new Path(path.getParent(), path.getName() + ".before");
            write(before, old.get(path));
            return fs.open(before, bufferSize);
        }

        @Override
        public FileStatus[] listStatus(Path path) throws IOException {
            FileStatus[] found = fs.listStatus(path);
            if (flaw == Flaw.LISTS_LATE) {
                found = Arrays.stream(found)
                        .filter(status ->
                                !fresh.remove(new Path(status.getPath().toUri())))
                        .toArray(FileStatus[]::new);
            } else if (flaw == Flaw.LISTS_EMPTY) {
                found = Arrays.stream(found)
                        .map(s -> new FileStatus(0, false, 1, 1, 0, s.getPath()))
                        .toArray(FileStatus[]::new);
            } else if (flaw == Flaw.LISTS_DELETED) {
                FileStatus[] gone = deleted.values().toArray(new FileStatus[0]);
                FileStatus[] all = Arrays.copyOf(found, found.length + gone.length);
                System.arraycopy(gone, 0, all, found.length, gone.length);
                found = all;
            }
            return found;
        }

        @Override
        public FileStatus getFileStatus(Path path) throws IOException {
            if (flaw == Flaw.ANY_CASE) {
                for (FileStatus status : fs.listStatus(path.getParent())) {
                    if (status.getPath()
                            .getName()
                            .toLowerCase(Locale.ROOT)
                            .equals(path.getName().toLowerCase(Locale.ROOT))) {
                        return status;
                    }
                }
                throw new FileNotFoundException(path.toString());
            }
            return fs.getFileStatus(path);
        }

        @Override
        public boolean delete(Path path, boolean recursive) throws IOException {
            if (flaw == Flaw.LISTS_DELETED && !recursive) {
                deleted.put(path, fs.getFileStatus(path));
            }
            return fs.delete(path, recursive);
        }

        @Override
        public boolean rename(Path from, Path to) throws IOException {
            switch (flaw) {
                case RENAME_REFUSES:
                    return false;
                case RENAME_COPIES:
                    write(to, bytes(from));
                    return true;
                case RENAME_LOSES:
                    fs.delete(from, false);
                    return true;
                case RENAME_EMPTY_FIRST:
                    halfway(to, 0);
                    move(from, to);
                    return true;
                default:
                    return fs.rename(from, to);
            }
        }
    }
}
