import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IdempotencyKey, IdempotencyKeyRepository } from './idempotency-key.repository.js';
import { IdempotencyService } from './idempotency.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([IdempotencyKey])],
  providers: [IdempotencyKeyRepository, IdempotencyService],
  exports: [IdempotencyService],
})
export class IdempotencyModule {}
