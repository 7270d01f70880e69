import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { ApiKey } from '../api-key.entity.js';

/** An API key without its secret. */
@ApiSchema({ name: 'ApiKey' })
export class ApiKeyDto {
  @ApiProperty({ description: 'The first part of the key, after `slw_`.', example: '4nKxq0Zt' })
  id: string;

  @ApiProperty({ example: 'ci' })
  name: string;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  created_at: string;

  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: null })
  expires_at: string | null;

  @ApiProperty({
    type: String,
    nullable: true,
    format: 'date-time',
    description: 'Up to a minute old.',
    example: '2026-11-21T09:31:00.000Z',
  })
  last_used_at: string | null;

  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: null })
  revoked_at: string | null;
}

export function toApiKeyDto(key: ApiKey): ApiKeyDto {
  return {
    id: key.id,
    name: key.name,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
  };
}
