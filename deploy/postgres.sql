-- A role for streamdp that may read one view and nothing else. Run as the owner of the tables:
--   psql warehouse -f postgres.sql
-- then give it a password, or a certificate, as pg_hba.conf asks, and set in the environment
--   PG="host=db dbname=warehouse user=streamdp sslmode=verify-full"     (password in PGPASSFILE)
CREATE ROLE streamdp LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 4;
ALTER ROLE streamdp SET default_transaction_read_only = on;
ALTER ROLE streamdp SET statement_timeout = '10min';
ALTER ROLE streamdp SET search_path = '';

-- One row a record; name the columns that are asked for, the time and the unit, and no others.
CREATE SCHEMA IF NOT EXISTS released;
CREATE OR REPLACE VIEW released.rides AS
    SELECT picked_up_at, minutes, rider_id FROM public.rides;

REVOKE ALL ON SCHEMA public FROM streamdp;
GRANT USAGE ON SCHEMA released TO streamdp;
GRANT SELECT ON released.rides TO streamdp;
