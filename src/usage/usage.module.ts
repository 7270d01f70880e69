import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ModelUsage, ModelUsageRepository } from './model-usage.repository.js';
import { UsageRetentionWorker } from './usage-retention.worker.js';

/** What calls of models took, by user, conversation, model and day. */
@Module({
  imports: [TypeOrmModule.forFeature([ModelUsage])],
  providers: [ModelUsageRepository, UsageRetentionWorker],
  exports: [ModelUsageRepository],
})
export class UsageModule {}
