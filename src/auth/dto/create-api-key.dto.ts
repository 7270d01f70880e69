import { ApiSchema } from '@nestjs/swagger';
import { Identifier } from '../../common/validation/identifier.decorator.js';
import { Instant } from '../../common/validation/instant.decorator.js';
import { Text } from '../../common/validation/text.decorator.js';

/** Body of `POST /api/v1/api-keys`. */
@ApiSchema({ name: 'CreateApiKey' })
export class CreateApiKeyDto {
  @Text({
    required: true,
    description: 'What the key is for; 1 to 100 characters.',
    example: 'ci',
    form: { minLength: 1, maxLength: 100, pattern: '\\S' },
    rule: (name) =>
      name.trim() === '' || name.length > 100
        ? 'Expected 1 to 100 characters.'
        : name === 'bootstrap'
          ? 'This name is kept for the key from BOOTSTRAP_API_KEY.'
          : null,
  })
  name: string;

  @Instant({
    nullable: true,
    description: 'When the key ends; without it the key lasts until it is revoked.',
    example: '2030-01-31T12:00:00Z',
  })
  expires_at?: Date | null;

  @Identifier({
    nullable: true,
    description: 'Owner of the key; administrators only. Without it: the caller.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  user_id?: string | null;
}
