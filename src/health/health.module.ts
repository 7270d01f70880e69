import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { DatabaseNotificationsModule } from '../database/database-notifications.module.js';
import { ObservabilityModule } from '../observability/observability.module.js';
import { DiagnosticsController } from './diagnostics.controller.js';
import { Draining, Readiness } from './readiness.js';
import { HealthController } from './health.controller.js';
import { ProgramParts } from './program-parts.js';

@Module({
  imports: [AuthModule, DatabaseNotificationsModule, ObservabilityModule],
  controllers: [HealthController, DiagnosticsController],
  providers: [Draining, ProgramParts, Readiness],
  exports: [Draining, Readiness],
})
export class HealthModule {}
