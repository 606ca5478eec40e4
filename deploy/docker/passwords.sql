-- Lets the roles of deploy/postgres/roles.sql log in, with passwords from the environment: no process list shows them.
\getenv ingest INGEST_PASSWORD
\getenv analysis ANALYSIS_PASSWORD
ALTER ROLE rappor_ingest LOGIN PASSWORD :'ingest';
ALTER ROLE rappor_analysis LOGIN PASSWORD :'analysis';
