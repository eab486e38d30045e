package com.example.orders;

import static org.apache.spark.sql.functions.col;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;

/** Upserts the orders of a folder of JSON files: {@code LoadOrders INPUT TABLE}. */
public final class LoadOrders {
    private LoadOrders() {}

    public static void main(String[] args) {
        SparkSession spark = SparkSession.builder().appName("load-orders").getOrCreate();
        Dataset<Row> orders = spark.read()
                .schema("order_id BIGINT, day STRING, amount DOUBLE, updated_at BIGINT")
                .json(args[0])
                .where(col("order_id").isNotNull());
        orders.write()
                .format("hudi")
                .option("hoodie.table.name", "orders")
                .option("hoodie.datasource.write.recordkey.field", "order_id")
                .option("hoodie.datasource.write.partitionpath.field", "day")
                .option("hoodie.datasource.write.precombine.field", "updated_at")
                .option("hoodie.datasource.write.operation", "upsert")
                .mode(SaveMode.Append)
                .save(args[1]);
        spark.stop();
        System.exit(0);
    }
}
