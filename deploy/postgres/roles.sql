-- Least-privilege roles for a store in PostgreSQL. Run it as the owner of the store, in its database,
-- after the first `rappor upgrade --store URL`:
--
--     psql --set ON_ERROR_STOP=1 --file roles.sql postgresql://rappor_operator@db.example.org/rappor
--
-- The owner is the operator: it migrates, saves definitions, imports, exports, retains, backs up.
-- rappor_ingest is for collectors, rappor_analysis for dashboards and analysts. Both are groups
-- without a login: GRANT rappor_ingest TO the login of your collectors. Creating them needs the right
-- CREATEROLE; an administrator may create them before.

DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'rappor_ingest') THEN
        CREATE ROLE rappor_ingest NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'rappor_analysis') THEN
        CREATE ROLE rappor_analysis NOLOGIN;
    END IF;
END $$;

BEGIN;

REVOKE ALL ON SCHEMA rappor FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA rappor FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA rappor FROM PUBLIC;
GRANT USAGE ON SCHEMA rappor TO rappor_ingest, rappor_analysis;

-- Collectors: definitions, tokens, and rows of their own. They cannot read the counts of other
-- writers, kept reports, the audit log or imports, and cannot delete anything.
GRANT SELECT ON rappor.state, rappor.definitions TO rappor_ingest;
GRANT SELECT, INSERT ON rappor.tokens TO rappor_ingest;
GRANT SELECT, INSERT, UPDATE ON rappor.cells, rappor.counts TO rappor_ingest;
GRANT SELECT, UPDATE (cells, parity) ON rappor.writers TO rappor_ingest;
GRANT EXECUTE ON FUNCTION
    rappor.register_writer(), rappor.current_writer(), rappor.open_token_day(integer),
    rappor.keep_reports(bigint, integer, bytea),
    rappor.add_batches(integer, bigint, bigint, integer, integer, bytea[], bigint[], bytea[],
        bytea[], bigint[], bigint[], bytea[], bytea[]) TO rappor_ingest;

-- Analysts: read everything but tokens; the database copies snapshots for them.
GRANT SELECT ON
    rappor.state, rappor.definitions, rappor.writers, rappor.cells, rappor.counts, rappor.reports,
    rappor.token_parts, rappor.imports, rappor.audit, rappor.audit_end, rappor.released_cells,
    rappor.released_counts TO rappor_analysis;
GRANT EXECUTE ON FUNCTION
    rappor.release(bigint[], integer), rappor.forget_released(bigint[]) TO rappor_analysis;

-- Rows of their own: those of the writer that this connection registered.
ALTER TABLE rappor.writers ENABLE ROW LEVEL SECURITY;
ALTER TABLE rappor.cells ENABLE ROW LEVEL SECURITY;
ALTER TABLE rappor.counts ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS own_rows ON rappor.writers;
DROP POLICY IF EXISTS own_rows ON rappor.cells;
DROP POLICY IF EXISTS own_rows ON rappor.counts;
DROP POLICY IF EXISTS read_all ON rappor.writers;
DROP POLICY IF EXISTS read_all ON rappor.cells;
DROP POLICY IF EXISTS read_all ON rappor.counts;
CREATE POLICY own_rows ON rappor.writers TO rappor_ingest
    USING (writer = (SELECT rappor.current_writer()));
CREATE POLICY own_rows ON rappor.cells TO rappor_ingest
    USING (writer = (SELECT rappor.current_writer()));
CREATE POLICY own_rows ON rappor.counts TO rappor_ingest
    USING (writer = (SELECT rappor.current_writer()));
CREATE POLICY read_all ON rappor.writers FOR SELECT TO rappor_analysis USING (true);
CREATE POLICY read_all ON rappor.cells FOR SELECT TO rappor_analysis USING (true);
CREATE POLICY read_all ON rappor.counts FOR SELECT TO rappor_analysis USING (true);

COMMIT;
