package io.hudioperator;

import io.hudioperator.contract.ErrorCode;
import io.hudioperator.timeline.DataFiles;
import io.hudioperator.timeline.Guarded;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The storage wrapper for callers of Hadoop's second interface, {@code FileContext} ({@code
 * fs.AbstractFileSystem.<scheme>.impl}). Spark writes checkpoints of streams through it; Hadoop's
 * own classes for it would create a client of the store without the wrapper (F280).
 */
public final class GuardedAbstractFileSystem extends DelegateToFileSystem {
    /** Called by Hadoop, by reflection. */
    public GuardedAbstractFileSystem(URI uri, Configuration conf) throws IOException, URISyntaxException {
        super(uri, wrapper(uri.getScheme(), conf), conf, uri.getScheme(), false);
    }

    /** Hudi creates no folder through this interface, so none is needed inside a table. */
    @Override
    public void mkdir(Path folder, FsPermission permission, boolean createParent) throws IOException {
        DataFiles.require(folder, fsImpl);
        super.mkdir(folder, permission, createParent);
    }

    private static FileSystem wrapper(String scheme, Configuration conf) throws IOException {
        Class<? extends FileSystem> found = FileSystem.getFileSystemClass(scheme, conf);
        try {
            FileSystem made = found.getDeclaredConstructor().newInstance();
            if (made instanceof Guarded) {
                return made;
            }
        } catch (ReflectiveOperationException e) {
            throw new IOException(ErrorCode.NO_GUARD.message("cannot create " + found.getName()), e);
        }
        throw new IOException(ErrorCode.NO_GUARD.message(
                "fs." + scheme + ".impl must be the storage wrapper, not " + found.getName()));
    }
}
