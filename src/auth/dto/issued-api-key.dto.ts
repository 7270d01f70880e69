import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { IssuedKey } from '../api-keys.service.js';

/** A new API key: the only answer that holds the key itself. */
@ApiSchema({ name: 'IssuedApiKey' })
export class IssuedApiKeyDto {
  @ApiProperty({ example: '4nKxq0Zt' })
  id: string;

  @ApiProperty({
    description: 'The key. It is shown here and never again.',
    example: 'slw_4nKxq0Zt_kD2w8q5X0bYtR7mNc1ZpLs9VhGjEaUiOfQ3xTy6WrAe',
  })
  key: string;

  @ApiProperty({ example: 'ci' })
  name: string;

  @ApiProperty({ format: 'date-time', example: '2026-11-21T09:30:00.000Z' })
  created_at: string;

  @ApiProperty({ type: String, nullable: true, format: 'date-time', example: null })
  expires_at: string | null;
}

export function toIssuedApiKeyDto({ key, record }: IssuedKey): IssuedApiKeyDto {
  return {
    id: record.id,
    key,
    name: record.name,
    created_at: record.createdAt.toISOString(),
    expires_at: record.expiresAt?.toISOString() ?? null,
  };
}
