"""Load one CSV file into a Delta table, as Delta's quick start does."""

from __future__ import annotations

import sys

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

source, target = sys.argv[1:3]
builder = (
    SparkSession.builder.appName("cold start")
    .master("local[*]")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
orders = spark.read.csv(
    source,
    header=True,
    mode="FAILFAST",
    schema="order_id bigint, customer_id bigint, country string, amount double, "
    "status string, updated_at timestamp, note string",
)
orders.write.format("delta").mode("append").save(target)
spark.stop()
