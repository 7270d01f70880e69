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
import { RunningSandboxes, SandboxKeys, SandboxQueries, StoredSandboxKeys } from './sandbox.queries.js';
import { SandboxActivity, SandboxKeepAlive } from './sandbox-activity.queries.js';
import { SandboxCreation } from './sandbox-creation.js';
import { SandboxesController } from './api/sandboxes.controller.js';
import { SandboxHost } from './sandbox-host.entity.js';
import { SandboxIdleness } from './lifecycle/idleness.js';
import { SandboxWorkerSignal, SandboxLeases } from './sandbox-leases.js';
import { SandboxEvents } from './sandbox-events.js';
import { SandboxQuota, UserSeparation } from './sandbox-quota.js';
import { SandboxResume, SandboxOrders, SandboxesService } from './sandboxes.service.js';
import { ExitDiagnosis } from './lifecycle/failure-messages.js';
import { SandboxCallback } from './sandbox-callback.js';
import { DriftDetector } from './lifecycle/drift.js';
import { SandboxMetrics } from './sandbox.metrics.js';
import { HostRegistry } from './lifecycle/host-registry.js';
import { IdleReaperLoop, IdleReaper } from './lifecycle/idle-reaper.js';
import { LaunchPlanner } from './lifecycle/launch-plan.js';
import { SandboxReconciler, DriftRepair } from './lifecycle/sandbox.reconciler.js';
import { SandboxStarter } from './lifecycle/sandbox-starter.js';
import { SandboxTransitionsRunner } from './lifecycle/sandbox-transitions.runner.js';
import { SandboxUpdates, SandboxRepository } from './sandbox.repository.js';
import { SandboxWorker } from './lifecycle/sandbox.worker.js';
import { SandboxUrls } from './sandbox-urls.js';
import { SandboxPresenter } from './api/sandbox.presenter.js';
import { Sandbox } from './sandbox.entity.js';
import { UserOverrides } from './user-overrides.js';

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
    SandboxUrls,
    SandboxPresenter,
    ExitDiagnosis,
    SandboxCallback,
    DriftDetector,
    SandboxCreation,
    SandboxKeepAlive,
    SandboxMetrics,
    HostRegistry,
    IdleReaperLoop,
    SandboxIdleness,
    SandboxWorkerSignal,
    LaunchPlanner,
    SandboxLeases,
    SandboxEvents,
    SandboxReconciler,
    SandboxOrders,
    SandboxQuota,
    DriftRepair,
    IdleReaper,
    SandboxResume,
    SandboxStarter,
    SandboxTransitionsRunner,
    SandboxRepository,
    SandboxUpdates,
    SandboxWorker,
    SandboxQueries,
    SandboxesService,
    UserSeparation,
    UserOverrides,
  ],
  exports: [
    HostIdentity,
    RunningSandboxes,
    SandboxActivity,
    SandboxUrls,
    SandboxCreation,
    SandboxKeepAlive,
    SandboxKeys,
    SandboxEvents,
    SandboxQuota,
    SandboxResume,
    SandboxRepository,
    SandboxesService,
    UserOverrides,
  ],
})
export class SandboxesModule {}
