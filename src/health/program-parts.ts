import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DATABASE_PROBLEMS } from '../common/errors/database-problems.js';
import { databaseFailure, isDatabaseAway } from '@slipway/database/database-failure.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { missingMigrations } from '@slipway/database/migration-runner.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { Draining, type PartState, Readiness } from './readiness.js';

const DATABASE_AWAY: PartState = {
  status: 'unknown',
  advice: 'It cannot be checked while the database cannot be used.',
};

@Injectable()
export class ProgramParts implements OnModuleInit {
  constructor(
    private readonly readiness: Readiness,
    private readonly draining: Draining,
    private readonly notifications: DatabaseNotifications,
    private readonly metrics: Metrics,
    private readonly dataSource: DataSource,
  ) {}

  onModuleInit(): void {
    const required = true;
    this.readiness.addPart({ name: 'shutdown', required, check: async () => this.shutdown() });
    this.readiness.addPart({ name: 'database', required, check: () => this.database() });
    this.readiness.addPart({ name: 'migrations', required, check: () => this.migrations() });
    this.readiness.addPart({
      name: 'notifications',
      required: false,
      check: async () => this.notificationConnection(),
    });
    this.metrics.addGauge({
      name: 'slipway_ready',
      help: '1 for each part of GET /health/ready that is ok, 0 for each that is not',
      label: 'part',
      read: async () =>
        new Map((await this.readiness.report()).map(({ name, status }) => [name, status === 'ok' ? 1 : 0])),
    });
  }

  private shutdown(): PartState {
    return this.draining.hasBegun
      ? { status: 'failed', advice: 'This replica is stopping; another one answers.' }
      : { status: 'ok' };
  }

  private async database(): Promise<PartState> {
    try {
      await this.dataSource.query('SELECT 1');
      return { status: 'ok' };
    } catch (cause) {
      const { detail } = DATABASE_PROBLEMS[databaseFailure(cause) ?? 'unreachable'];
      return { status: 'failed', advice: detail, cause };
    }
  }

  /** Accepts a database of a later version: migrations add before they remove. */
  private async migrations(): Promise<PartState> {
    try {
      const missing = await missingMigrations(this.dataSource);
      return missing.length === 0
        ? { status: 'ok' }
        : {
            status: 'failed',
            advice: `The database lacks ${missing.length} migrations of this version, as after restoring an older backup. Restart this replica: it applies them when it starts.`,
            cause: missing.join(', '),
          };
    } catch (error) {
      if (isDatabaseAway(error)) {
        return DATABASE_AWAY;
      }
      throw error;
    }
  }

  private notificationConnection(): PartState {
    return this.notifications.isConnected
      ? { status: 'ok' }
      : {
          status: 'failed',
          advice:
            'The connection on which replicas hear of each other is down: streams and starts notice changes seconds later. It is opened again by itself; behind a pooler it needs DATABASE_DIRECT_URL.',
        };
  }
}
