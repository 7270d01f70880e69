import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Columns that version 0.2.0 reads and writes, with the values that it takes for unset. */
const UNSET = {
  language: null,
  agent: null,
  max_iterations: null,
  security_analyzer: null,
  confirmation_mode: null,
  llm_model: null,
  llm_base_url: null,
  remote_runtime_resource_factor: null,
  enable_default_condenser: true,
  enable_sound_notifications: false,
  enable_proactive_conversation_starters: true,
  enable_solvability_analysis: true,
  user_consents_to_analytics: null,
  sandbox_base_container_image: null,
  sandbox_runtime_container_image: null,
  max_budget_per_task: null,
  email: null,
  email_verified: null,
  git_user_name: null,
  git_user_email: null,
  fork: null,
  clone_depth: null,
  clone_filter: null,
};

const NAMES = `'{${Object.keys(UNSET).join(',')}}'::text[]`;

/**
 * One document in place of a column for each member. While replicas of version 0.2.0 run, which know the columns alone, a
 * trigger keeps both the same; it goes with the columns, one release later. Encrypted columns stay as they are.
 */
export class StoreSettingsAsDocuments1766900000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE settings ADD COLUMN document jsonb NOT NULL DEFAULT '{}';

      CREATE FUNCTION settings_of_columns(settings) RETURNS jsonb LANGUAGE sql STABLE AS $$
        SELECT coalesce(jsonb_object_agg(key, value), '{}')
        FROM jsonb_each(to_jsonb($1))
        WHERE key = ANY(${NAMES}) AND value <> '${JSON.stringify(UNSET)}'::jsonb -> key
      $$;

      CREATE FUNCTION keep_settings_columns() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
        BEGIN
          IF TG_OP = 'INSERT' AND NEW.document = '{}'
            OR TG_OP = 'UPDATE' AND settings_of_columns(NEW) <> settings_of_columns(OLD) THEN
            NEW.document = NEW.document - ${NAMES} || settings_of_columns(NEW);
          ELSE
            NEW = jsonb_populate_record(NEW, '${JSON.stringify(UNSET)}'::jsonb || NEW.document);
          END IF;
          RETURN NEW;
        END
      $$;

      UPDATE settings SET document = settings_of_columns(settings);
      CREATE TRIGGER settings_columns BEFORE INSERT OR UPDATE ON settings
        FOR EACH ROW EXECUTE FUNCTION keep_settings_columns()`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER settings_columns ON settings;
      DROP FUNCTION keep_settings_columns();
      DROP FUNCTION settings_of_columns(settings);
      ALTER TABLE settings DROP COLUMN document`);
  }
}
