-- What may be shown to everybody: it reads releases alone.
SELECT
    batch AS day,
    value AS median_minutes,
    "lower" AS at_least,
    "upper" AS at_most,
    value - lag(value) OVER (ORDER BY batch) AS change
FROM {{ source('released', 'air_time') }}
WHERE quantile = 0.5
