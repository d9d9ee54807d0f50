-- The records: one row a flight. A day that is built again must not be released again, and is not.
{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='date') }}

SELECT date, tail_number, origin, air_time
FROM '{{ env_var("FLIGHTS") }}'
WHERE date = DATE '{{ var("day") }}'
