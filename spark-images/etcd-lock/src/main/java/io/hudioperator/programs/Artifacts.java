package io.hudioperator.programs;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.ivy.core.settings.IvySettings;
import org.apache.ivy.plugins.resolver.IBiblioResolver;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.deploy.SparkSubmitUtils;
import scala.Option;
import scala.collection.JavaConverters;

/** Files and packages that a program brings along, before its SparkContext is made. */
public final class Artifacts {
    private static final Pattern VERSIONED = Pattern.compile("META-INF/versions/[0-9]+/(.*)");
    /**
     * Classes of these packages would be another release's, beside those of the image: the guard
     * was tested with the image's alone.
     */
    private static final Map<String, String> OF_THE_IMAGE =
            new TreeMap<>(Map.of("org/apache/hudi/", "Hudi", "io/hudioperator/", "hudi-operator"));

    private Artifacts() {}

    /**
     * Copies a file of a store into a folder, under its own name, once: driver and executors have
     * the same bytes, whatever becomes of the file. Returns where it is.
     */
    public static String fetch(String from, String folder) throws IOException {
        Configuration conf = SparkHadoopUtil.get().newConfiguration(new SparkConf());
        Path path = new Path(from);
        java.nio.file.Path target = java.nio.file.Path.of(folder, path.getName());
        try (FileSystem storage = FileSystem.newInstance(path.toUri(), conf)) {
            if (!storage.getFileStatus(path).isFile()) {
                throw new FileNotFoundException(from + " is no file");
            }
            try (InputStream in = storage.open(path)) {
                Files.copy(in, target);
            }
        }
        return target.toString();
    }

    /**
     * Refuses what is no jar, and one with classes of Hudi or of the operator.
     *
     * @throws IllegalArgumentException with the reason
     */
    public static void requireJar(String file) throws IOException {
        try (ZipFile jar = new ZipFile(new File(file))) {
            jar.stream().forEach(entry -> requireEntry(entry.getName()));
        } catch (ZipException e) {
            throw new IllegalArgumentException("is no jar: " + e.getMessage(), e);
        }
    }

    private static void requireEntry(String name) {
        Matcher versioned = VERSIONED.matcher(name);
        String path = versioned.matches() ? versioned.group(1) : name;
        OF_THE_IMAGE.forEach((prefix, whose) -> {
            if (path.startsWith(prefix) && path.endsWith(".class")) {
                throw new IllegalArgumentException("has a class of " + whose + ", " + name + ": the image has " + whose
                        + " already; build the jar without it (scope provided)");
            }
        });
    }

    /**
     * Jars of these packages and of what they depend on, but for Spark's own. They come from this
     * mirror alone.
     *
     * @param coordinates {@code group:artifact:version}, separated by commas
     * @param excludes {@code group:artifact}
     */
    public static List<String> packages(String coordinates, List<String> excludes, String mirror, String folder) {
        IBiblioResolver resolver = new IBiblioResolver();
        resolver.setName("mirror");
        resolver.setM2compatible(true);
        resolver.setUsepoms(true);
        resolver.setRoot(mirror);
        IvySettings settings = new IvySettings();
        settings.setDefaultIvyUserDir(new File(folder));
        settings.setDefaultCache(new File(folder, "cache"));
        settings.addResolver(resolver);
        settings.setDefaultResolver("mirror");
        List<String> found = JavaConverters.seqAsJavaList(SparkSubmitUtils.resolveMavenCoordinates(
                coordinates,
                settings,
                Option.empty(),
                true,
                JavaConverters.asScalaBuffer(excludes).toSeq(),
                false));
        return new ArrayList<>(found);
    }
}
