import { Module } from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { AppConfig } from '../../config/app-config.js';
import { MetricsModule } from '../../metrics/metrics.module.js';
import { SettingsModule } from '../../settings/settings.module.js';
import { AgentServersModule } from '../agent-servers/agent-servers.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { SandboxSpecsModule } from '../sandbox-specs/sandbox-specs.module.js';
import { BackendReadiness } from './lifecycle/backend-readiness.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { createSandboxBackend } from './sandbox-backend.factory.js';
import { HostIdentity, loadHostId } from './host-identity.js';
import { RunningSandboxes, SandboxKeys, SandboxesReader, StoredSandboxKeys } from './sandbox.queries.js';
import { SandboxActivity, SandboxHolds } from './sandbox-activity.queries.js';
import { SandboxCreation } from './sandbox-creation.js';
import { SandboxesController } from './api/sandboxes.controller.js';
import { SandboxHost } from './sandbox-host.entity.js';
import { SandboxIdleness } from './lifecycle/idleness.js';
import { SandboxKicks, SandboxLeases } from './sandbox-leases.js';
import { SandboxListeners } from './sandbox-events.js';
import { SandboxPlaces, UserSeparation } from './sandbox-quota.js';
import { SandboxResume, SandboxOrders, SandboxesService, UserWishes } from './sandboxes.service.js';
import { SandboxAutopsy } from './lifecycle/failure-messages.js';
import { SandboxCallback } from './sandbox-callback.js';
import { SandboxCensus } from './lifecycle/drift.js';
import { SandboxGauges } from './sandbox.metrics.js';
import { SandboxHosts } from './lifecycle/host-registry.js';
import { SandboxIdleWatch, SandboxRest } from './lifecycle/idle-reaper.js';
import { SandboxLaunches } from './lifecycle/launch-plan.js';
import { SandboxMonitor, SandboxRepairs } from './lifecycle/sandbox.reconciler.js';
import { SandboxStarter } from './lifecycle/sandbox-starter.js';
import { SandboxSteps } from './lifecycle/sandbox-transitions.runner.js';
import { SandboxUpdates, SandboxStore } from './sandbox.repository.js';
import { SandboxWorker } from './lifecycle/sandbox.worker.js';
import { SandboxAddresses } from './sandbox-urls.js';
import { SandboxAnswers } from './api/sandbox.presenter.js';
import { Sandbox } from './sandbox.entity.js';

/** Sandboxes: rows that say what should be, and workers that make it so. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Sandbox, SandboxHost]),
    AgentServersModule,
    SandboxSpecsModule,
    IdempotencyModule,
    MetricsModule,
    SettingsModule,
  ],
  controllers: [SandboxesController],
  providers: [
    {
      provide: HostIdentity,
      inject: [AppConfig],
      useFactory: async ({ sandboxes, dataDir }: AppConfig): Promise<HostIdentity> =>
        new HostIdentity(sandboxes.hostId ?? (await loadHostId(dataDir))),
    },
    {
      provide: SandboxBackend,
      inject: [AppConfig, getDataSourceToken(), HostIdentity],
      useFactory: (
        config: AppConfig,
        dataSource: DataSource,
        { id }: HostIdentity,
      ): Promise<SandboxBackend> => createSandboxBackend(config, dataSource, id),
    },
    { provide: SandboxKeys, useClass: StoredSandboxKeys },
    BackendReadiness,
    RunningSandboxes,
    SandboxActivity,
    SandboxAddresses,
    SandboxAnswers,
    SandboxAutopsy,
    SandboxCallback,
    SandboxCensus,
    SandboxCreation,
    SandboxHolds,
    SandboxGauges,
    SandboxHosts,
    SandboxIdleWatch,
    SandboxIdleness,
    SandboxKicks,
    SandboxLaunches,
    SandboxLeases,
    SandboxListeners,
    SandboxMonitor,
    SandboxOrders,
    SandboxPlaces,
    SandboxRepairs,
    SandboxRest,
    SandboxResume,
    SandboxStarter,
    SandboxSteps,
    SandboxStore,
    SandboxUpdates,
    SandboxWorker,
    SandboxesReader,
    SandboxesService,
    UserSeparation,
    UserWishes,
  ],
  exports: [
    HostIdentity,
    RunningSandboxes,
    SandboxActivity,
    SandboxAddresses,
    SandboxCreation,
    SandboxHolds,
    SandboxKeys,
    SandboxListeners,
    SandboxPlaces,
    SandboxResume,
    SandboxStore,
    SandboxesService,
    UserWishes,
  ],
})
export class SandboxesModule {}
