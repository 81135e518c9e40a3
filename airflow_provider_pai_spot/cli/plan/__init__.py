"""
`pai-spot plan`: what a task would submit, from the DAG file to the masked CreateJob body. Nothing is sent to DLC.

=============  ==========================================================================
module         what it knows
=============  ==========================================================================
`command`      the command line; puts the others in order
`dags`         finds the DAG and its task, without the metadata database
`mapping`      a mapped task -> the operator of one map index
`context`      the template context of a run that does not exist
`rendering`    renders argument by argument; what cannot be known yet is a result, too
`connection`   the hook, or what stands in for a connection that is not there
`drafting`     operator + connection -> the body that attempt 0 would send
`masking`      the body as it may be shown
`contents`     the plan as one value, and its JSON
`showing`      the plan as text
=============  ==========================================================================
"""
