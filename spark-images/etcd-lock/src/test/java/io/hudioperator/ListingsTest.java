package io.hudioperator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.StoragePathInfo;
import org.junit.jupiter.api.Test;

/** Listings as Python parses them. */
class ListingsTest {
    @Test
    void fieldsOfEachElementInOrder() {
        FileStatus folder = new FileStatus(4096, true, 1, 0, 0, new Path("s3a://lake/t/p=1"));
        FileStatus file = new FileStatus(7, false, 1, 0, 0, new Path("s3a://lake/t/f.parquet"));
        assertEquals(
                "[[\"s3a://lake/t/p=1\",true,0],[\"s3a://lake/t/f.parquet\",false,7]]",
                Listings.ofStatuses(new FileStatus[] {folder, file}));
        assertEquals("[]", Listings.ofStatuses(new FileStatus[0]));
    }

    @Test
    void theTimeOfTheLastChange() {
        FileStatus folder = new FileStatus(4096, true, 1, 0, 3, new Path("s3a://lake/in"));
        FileStatus file = new FileStatus(7, false, 1, 0, 1_700_000_000_123L, new Path("s3a://lake/in/f.csv"));
        assertEquals(
                "[[\"s3a://lake/in\",true,0,3],[\"s3a://lake/in/f.csv\",false,7,1700000000123]]",
                Listings.ofDatedStatuses(new FileStatus[] {folder, file}));
    }

    @Test
    void arraysOfSubclasses() {
        FileStatus file = new FileStatus(7, false, 1, 0, 0, new Path("/t/f"));
        assertEquals(
                "[[\"/t/f\",false,7]]",
                Listings.ofStatuses(new LocatedFileStatus[] {new LocatedFileStatus(file, null)}));
    }

    @Test
    void aNameMayLookLikeTheTextOfAListing() {
        String name = "/t/p; isDirectory=true; length=9;/a\"b\nc";
        FileStatus file = new FileStatus(7, false, 1, 0, 0, new Path(name));
        assertEquals(
                "[[\"/t/p; isDirectory=true; length=9;/a\\\"b\\nc\",false,7]]",
                Listings.ofStatuses(new FileStatus[] {file}));
    }

    @Test
    void foldersOfTheMetadataTable() {
        StoragePathInfo file = new StoragePathInfo(new StoragePath("/t/p/f, length=9,"), 7, false, (short) 1, 0, 0);
        assertEquals("[[\"/t/p/f, length=9,\",false,7]]", Listings.ofFolders(Map.of("/t/p", List.of(file))));
    }
}
