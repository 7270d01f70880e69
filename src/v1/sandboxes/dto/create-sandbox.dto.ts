import { ApiSchema } from '@nestjs/swagger';
import { Text } from '../../../common/validation/text.decorator.js';

/** Query, and body, of `POST /api/v1/sandboxes`. */
@ApiSchema({ name: 'CreateSandboxRequest' })
export class CreateSandboxDto {
  @Text({
    description: 'Id of the specification; the default one (the first of the list) when it is left out.',
    nullIsAbsent: true,
    example: 'slipway',
  })
  sandbox_spec_id?: string;
}
