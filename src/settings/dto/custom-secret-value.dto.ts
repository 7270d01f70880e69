import { ApiSchema } from '@nestjs/swagger';
import { Text } from '../../common/validation/text.decorator.js';

/** One entry of a `custom_secrets` map. Members it does not list are ignored. */
@ApiSchema({ name: 'CustomSecretValue' })
export class CustomSecretValueDto {
  @Text({ required: true, secret: true, description: 'The value.', example: 'secret-example' })
  secret: string;

  @Text({
    nullable: true,
    description: 'What it is for; absent keeps the stored text, null clears it.',
    example: 'Token of the deployment service',
  })
  description?: string | null;
}
