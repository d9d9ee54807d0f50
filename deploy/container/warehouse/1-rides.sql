-- Made-up rides, ten days of them, so that there is something to release: replace it by your tables.
CREATE TABLE public.rides AS
SELECT
    timestamptz '2026-01-01 00:00 UTC' + i * interval '90 seconds' AS picked_up_at,
    round((5 + 20 * random() * random() * (1 + (i / 960) % 2))::numeric, 1)::double precision AS minutes,
    i * 7919 % 3001 AS rider_id
FROM generate_series(0, 9599) AS i;
