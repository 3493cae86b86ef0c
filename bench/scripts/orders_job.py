"""Upsert one CSV file of orders: typed, checked, bad rows aside, the newest of each key wins."""

from __future__ import annotations

import sys

from delta import DeltaTable, configure_spark_with_delta_pip
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

source, target, aside = sys.argv[1:4]
builder = (
    SparkSession.builder.appName("orders")
    .master("local[*]")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()

texts = spark.read.csv(source, header=True)
typed = texts.select(
    F.expr("try_cast(order_id AS bigint)").alias("order_id"),
    F.expr("try_cast(customer_id AS bigint)").alias("customer_id"),
    "country",
    F.expr("try_cast(amount AS double)").alias("amount"),
    "status",
    F.expr("try_cast(updated_at AS timestamp)").alias("updated_at"),
    "note",
    F.to_json(F.struct("*")).alias("raw"),
).cache()
bad = "order_id IS NULL OR updated_at IS NULL OR amount IS NULL OR amount < 0"
typed.filter(bad).select("raw").write.format("delta").mode("append").save(aside)
newest = Window.partitionBy("order_id").orderBy(F.col("updated_at").desc())
orders = (
    typed.filter(f"NOT ({bad})")
    .drop("raw")
    .withColumn("place", F.row_number().over(newest))
    .filter("place = 1")
    .drop("place")
)
if DeltaTable.isDeltaTable(spark, target):
    (
        DeltaTable.forPath(spark, target)
        .alias("target")
        .merge(orders.alias("source"), "target.order_id = source.order_id")
        .whenMatchedUpdateAll("source.updated_at > target.updated_at")
        .whenNotMatchedInsertAll()
        .execute()
    )
else:
    orders.write.format("delta").partitionBy("country").save(target)
print(typed.count(), "rows read,", typed.filter(bad).count(), "set aside")
spark.stop()
