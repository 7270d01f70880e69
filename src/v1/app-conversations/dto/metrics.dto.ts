import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { MetricsSnapshot, TokenUsage } from '../../../agent-protocol/conversation-info.js';

@ApiSchema({ name: 'TokenUsage' })
export class TokenUsageDto implements TokenUsage {
  @ApiProperty({ example: 'provider/model-1' })
  model: string;

  @ApiProperty({ type: 'integer', example: 18_200 })
  prompt_tokens: number;

  @ApiProperty({ type: 'integer', example: 940 })
  completion_tokens: number;

  @ApiProperty({ type: 'integer', example: 12_000 })
  cache_read_tokens: number;

  @ApiProperty({ type: 'integer', example: 0 })
  cache_write_tokens: number;

  @ApiProperty({ type: 'integer', example: 0 })
  reasoning_tokens: number;

  @ApiProperty({ type: 'integer', description: 'Of the model; 0 when it is not known.', example: 160_000 })
  context_window: number;

  @ApiProperty({ type: 'integer', description: 'Of the last call.', example: 5_100 })
  per_turn_token: number;

  @ApiProperty({ example: '' })
  response_id: string;
}

/** What a conversation has used so far. */
@ApiSchema({ name: 'MetricsSnapshot' })
export class MetricsDto implements MetricsSnapshot {
  @ApiProperty({ example: 'provider/model-1' })
  model_name: string;

  @ApiProperty({ description: 'USD.', example: 0.42 })
  accumulated_cost: number;

  @ApiProperty({ type: Number, nullable: true, description: 'USD.', example: 5 })
  max_budget_per_task: number | null;

  @ApiProperty({ type: TokenUsageDto, nullable: true })
  accumulated_token_usage: TokenUsageDto | null;
}
